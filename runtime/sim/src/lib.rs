//! Runs schedules in virtual time, with seeded order
