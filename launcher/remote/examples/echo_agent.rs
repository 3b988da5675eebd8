//! The smallest agent, for the tests of the carriers: greets with the build it was told, then
//! sends back what it is sent. Without arguments it is the smallest launcher: it starts itself as
//! an agent on this machine and talks to it.

use std::io::{self, Read, Write};

use rlaunch_remote::{CarrierChoice, HostTarget, RemoteOptions, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] => launch(),
        ["agent", "--build", build] => agent(build),
        _ => Err(io::Error::other("agent --build BUILD")),
    }
}

fn agent(build: &str) -> io::Result<()> {
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    stdout.write_all(rlaunch_wire::handshake::greeting(build).as_bytes())?;
    // Together with the greeting, as an agent's first frame may come.
    stdout.write_all(b"hello\n")?;
    stdout.flush()?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stdin.read(&mut buffer)? {
            0 => {
                // Seen by the launcher only if it waits for more than the stream.
                eprintln!("the launcher has gone");
                return Ok(());
            }
            length => stdout.write_all(&buffer[..length])?,
        }
        stdout.flush()?;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn launch() -> io::Result<()> {
    let target = HostTarget::new("localhost");
    let options = RemoteOptions::default();
    let connected = connect(&target, CarrierChoice::Auto, &options).await;
    let mut connection = connected.map_err(io::Error::other)?;
    connection.io.write_all(b"and back").await?;
    let mut back = [0; 14];
    connection.io.read_exact(&mut back).await?;
    drop(connection.io);
    let last = connection.diagnostics.recv().await.unwrap_or_default();
    println!(
        "{} {:?} {last}",
        connection.carrier,
        String::from_utf8_lossy(&back)
    );
    Ok(())
}
