//! Which of several failures came first.
