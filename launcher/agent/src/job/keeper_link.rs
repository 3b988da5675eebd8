//! The agent's side of the keeper's socket.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::unix::AsyncFd;

use super::pipe::set_nonblocking;
use crate::keeper::KeeperEnd;
use crate::keeper::messages::{self, Event, FromKeeper, Order, Plan, ToKeeper};
use crate::sys;

pub(crate) struct KeeperLink {
    socket: AsyncFd<OwnedFd>,
    /// Heard while an order waited to be sent: the keeper, telling of hundreds of ranks, may wait
    /// for this side just then.
    early: Mutex<VecDeque<Event>>,
    pub(crate) pid: i32,
}

impl KeeperLink {
    /// Inside the runtime.
    pub(crate) fn new(end: KeeperEnd) -> io::Result<Self> {
        set_nonblocking(&end.socket)?;
        Ok(Self {
            socket: sys::async_fd(end.socket)?,
            early: Mutex::default(),
            pid: end.pid,
        })
    }

    /// `standard` becomes the rank's 0, 1 and 2.
    pub(crate) async fn spawn(
        &self,
        rank: u32,
        plan: &Plan,
        standard: &[OwnedFd; 3],
    ) -> io::Result<()> {
        let plan = messages::pack(plan)?;
        let [stdin, stdout, stderr] = standard;
        self.send(Order::Spawn(rank), &[&plan, stdin, stdout, stderr])
            .await
    }

    /// Where the job's record stands, and its file, open for writing at the end.
    pub(crate) async fn record(&self, path: &Path, file: &OwnedFd) -> io::Result<()> {
        let path = path.as_os_str().as_encoded_bytes().to_vec();
        self.send(Order::Record(path), &[file]).await
    }

    pub(crate) async fn order(&self, order: Order) -> io::Result<()> {
        self.send(order, &[]).await
    }

    async fn send(&self, order: Order, descriptors: &[&OwnedFd]) -> io::Result<()> {
        let message = ToKeeper { order: Some(order) };
        loop {
            tokio::select! {
                ready = self.socket.writable() => {
                    let send = |socket: &AsyncFd<_>| {
                        messages::send(socket.get_ref(), &message, descriptors)
                    };
                    if let Ok(sent) = ready?.try_io(send) {
                        return sent;
                    }
                }
                event = self.fresh_event() => match event {
                    Some(event) => self.early().push_back(event),
                    None => return Err(io::ErrorKind::BrokenPipe.into()),
                },
            }
        }
    }

    fn early(&self) -> MutexGuard<'_, VecDeque<Event>> {
        // Nothing can panic between a change's parts.
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next event; none if the keeper is gone. Nothing is lost if the future is dropped.
    pub(crate) async fn event(&self) -> Option<Event> {
        let early = self.early().pop_front();
        match early {
            Some(event) => Some(event),
            None => self.fresh_event().await,
        }
    }

    async fn fresh_event(&self) -> Option<Event> {
        loop {
            let mut ready = self.socket.readable().await.ok()?;
            let received = ready.try_io(|socket| messages::receive::<FromKeeper>(socket.get_ref()));
            match received {
                Ok(Ok(Some((message, _)))) if message.event.is_some() => return message.event,
                Ok(Ok(Some(_))) | Err(_) => {}
                Ok(Ok(None) | Err(_)) => return None,
            }
        }
    }
}
