//! Real hosts on one machine, made of namespaces
