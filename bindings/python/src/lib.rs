//! The native part of import rlaunch
