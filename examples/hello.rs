//! Each rank says where it is, then all add up their numbers.
//!
//! ```text
//! cargo build --example hello && rlaunch -np 4 target/debug/examples/hello
//! ```

use rlaunch_runtime::{Error, Op};

fn main() -> Result<(), Error> {
    let world = rlaunch_runtime::init()?;
    println!(
        "hello from rank {} of {} (local rank {} on {})",
        world.rank(),
        world.size(),
        world.local_rank(),
        world.host()
    );

    let mut numbers = [f64::from(world.rank() + 1); 4];
    world.all_reduce(&mut numbers, Op::Sum)?;
    if world.rank() == 0 {
        println!("the sum over all ranks: {numbers:?}");
    }
    world.finalize()
}
