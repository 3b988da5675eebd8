//! The size of our terminal, which ranks with a terminal of their own get (`--pty`), and its changes.

use rlaunch_control::v1::{WindowSize, to_agent};
use terminal_size::{Height, Width, terminal_size_of};

use super::driver::Driver;

/// Where output goes, if that is a terminal; else of the first standard stream that is one.
pub(super) fn size() -> Option<WindowSize> {
    let sizes = [
        terminal_size_of(std::io::stdout()),
        terminal_size_of(std::io::stderr()),
        terminal_size_of(std::io::stdin()),
    ];
    let (Width(columns), Height(rows)) = sizes.into_iter().flatten().next()?;
    Some(WindowSize {
        rows: rows.into(),
        columns: columns.into(),
    })
}

impl Driver<'_> {
    /// At SIGWINCH. Whether ranks hear of it so: their terminals signal a change to them, and only that.
    pub(super) fn passes_size_on(&mut self) -> bool {
        if self.window.is_none() {
            return false;
        }
        let now = size();
        let changed = now.is_some() && now != self.window;
        if let Some(size) = now.filter(|_| changed) {
            self.window = Some(size);
            self.links.send_all(&to_agent::Message::WindowSize(size));
        }
        changed
    }
}
