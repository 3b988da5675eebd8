//! Decisions of a launch, pure: hostfile, allocation, placement, map, supervision, verdict
