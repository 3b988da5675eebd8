//! Which names are whose.
