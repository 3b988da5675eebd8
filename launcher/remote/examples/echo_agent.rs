//! The smallest agent, for the tests of the carriers: greets with the build it was told, then
//! sends back what it is sent. With `FAKE_AGENT_STDERR` set it says that on stderr first.

use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [word, option, build] = arguments.as_slice() else {
        return Err(io::Error::other("agent --build BUILD"));
    };
    assert_eq!((word.as_str(), option.as_str()), ("agent", "--build"));
    if let Ok(words) = std::env::var("FAKE_AGENT_STDERR") {
        eprintln!("{words}");
    }
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    stdout.write_all(rlaunch_wire::handshake::greeting(build).as_bytes())?;
    // Together with the greeting, as an agent's first frame may come.
    stdout.write_all(b"hello\n")?;
    stdout.flush()?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stdin.read(&mut buffer)? {
            0 => return Ok(()),
            length => stdout.write_all(&buffer[..length])?,
        }
        stdout.flush()?;
    }
}
