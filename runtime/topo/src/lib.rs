//! What this machine is: cores, GPUs, network interfaces
