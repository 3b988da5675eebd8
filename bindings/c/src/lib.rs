//! librlaunch.so: the C API
