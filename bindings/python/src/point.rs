//! Calls of two ranks.

use crate::argument::{self, Group};
use crate::array::{Access, Array};
use crate::communicator::Communicator;
use crate::group;
use crate::in_use;
use crate::number::{ANY, Seconds, Whole};
use crate::request::{Gives, Request};
use pyo3::prelude::*;
use rlaunch_runtime::{Source, Status, Tag};

/// `rlaunch.Status`
pub(crate) fn status(py: Python<'_>, status: &Status) -> PyResult<Py<PyAny>> {
    let class = py.import("rlaunch._point")?.getattr("Status")?;
    Ok(class
        .call1((status.source, status.tag, status.count))?
        .unbind())
}

fn source(group: Group, value: Whole) -> PyResult<Source> {
    if value.is_any() {
        return Ok(Source::Any);
    }
    Ok(Source::Rank(argument::rank(group, "source", &value)?))
}

fn wanted(tag: Whole) -> PyResult<Tag> {
    if tag.is_any() {
        return Ok(Tag::Any);
    }
    Ok(Tag::Is(argument::tag(&tag)?))
}

#[pymethods]
impl Communicator {
    /// Sends x to a rank, which receives it with the same tag. Small arrays are on their way at
    /// once, larger ones when the receiver takes them.
    #[pyo3(
        signature = (x, to, tag=Whole::Is(0), *, timeout=None),
        text_signature = "($self, x, to, tag=0, *, timeout=None)"
    )]
    fn send(
        &self,
        x: &Bound<'_, PyAny>,
        to: Whole,
        tag: Whole,
        timeout: Option<Seconds>,
    ) -> PyResult<()> {
        let py = x.py();
        if group::is_open() {
            return group::add(py, self.isend(x, to, tag, timeout)?);
        }
        let place = self.place(py)?;
        let (to, tag) = (argument::rank(place, "to", &to)?, argument::tag(&tag)?);
        let timeout = argument::seconds("timeout", timeout)?;
        let array = Array::new(x, "x", Access::Read)?;
        in_use::check("send", [&array.in_use("x")])?;
        let buffer = array.buffer;
        self.call(py, move |handle| {
            let at = { buffer };
            // SAFETY: `array` keeps the block alive; Array::new checked type, order and alignment.
            unsafe { handle.send_raw(at.pointer, at.count, at.dtype, to, tag, timeout) }
        })
    }

    /// Receives into x the oldest array that matches, of x's dtype and at most its size; source may
    /// be ANY_SOURCE, tag ANY_TAG. Returns its Status: source, tag, count.
    #[pyo3(
        signature = (x, source, tag=Whole::Is(0), *, timeout=None),
        text_signature = "($self, x, source, tag=0, *, timeout=None)"
    )]
    fn recv(
        &self,
        x: &Bound<'_, PyAny>,
        source: Whole,
        tag: Whole,
        timeout: Option<Seconds>,
    ) -> PyResult<Py<PyAny>> {
        let py = x.py();
        if group::is_open() {
            group::add(py, self.irecv(x, source, tag, timeout)?)?;
            return status(py, &Status::default());
        }
        let (source, tag) = (self::source(self.place(py)?, source)?, wanted(tag)?);
        let timeout = argument::seconds("timeout", timeout)?;
        let array = Array::new(x, "x", Access::Write)?;
        in_use::check("recv", [&array.in_use("x")])?;
        let buffer = array.buffer;
        let known = self.call(py, move |handle| {
            let at = { buffer };
            // SAFETY: `array` keeps the block alive; Array::new checked type, order, alignment and
            // access.
            unsafe { handle.recv_raw(at.pointer, at.count, at.dtype, source, tag, timeout) }
        })?;
        status(py, &known)
    }

    /// As send, but returns at once, with a Request.
    #[pyo3(
        signature = (x, to, tag=Whole::Is(0), *, timeout=None),
        text_signature = "($self, x, to, tag=0, *, timeout=None)"
    )]
    fn isend(
        &self,
        x: &Bound<'_, PyAny>,
        to: Whole,
        tag: Whole,
        timeout: Option<Seconds>,
    ) -> PyResult<Request> {
        let place = self.place(x.py())?;
        let (to, tag) = (argument::rank(place, "to", &to)?, argument::tag(&tag)?);
        let timeout = argument::seconds("timeout", timeout)?;
        let array = Array::new(x, "x", Access::Read)?;
        in_use::check("send", [&array.in_use("x")])?;
        let buffer = array.buffer;
        let request = self.call(x.py(), move |handle| {
            let at = { buffer };
            // SAFETY: as in send; the request keeps the block alive until it is complete.
            unsafe { handle.start_send_raw(at.pointer, at.count, at.dtype, to, tag, timeout) }
        })?;
        in_use::note("send", vec![array.in_use("x")], &request.watch());
        let nothing = Gives::Object(x.py().None());
        Ok(Request::new(request, nothing, array.keepers().into(), None))
    }

    /// As recv, but returns at once, with a Request, whose wait() returns the Status.
    #[pyo3(
        signature = (x, source, tag=Whole::Is(0), *, timeout=None),
        text_signature = "($self, x, source, tag=0, *, timeout=None)"
    )]
    fn irecv(
        &self,
        x: &Bound<'_, PyAny>,
        source: Whole,
        tag: Whole,
        timeout: Option<Seconds>,
    ) -> PyResult<Request> {
        let (source, tag) = (self::source(self.place(x.py())?, source)?, wanted(tag)?);
        let timeout = argument::seconds("timeout", timeout)?;
        let array = Array::new(x, "x", Access::Write)?;
        in_use::check("recv", [&array.in_use("x")])?;
        let buffer = array.buffer;
        let request = self.call(x.py(), move |handle| {
            let at = { buffer };
            // SAFETY: as in recv; the request keeps the block alive until it is complete.
            unsafe { handle.start_recv_raw(at.pointer, at.count, at.dtype, source, tag, timeout) }
        })?;
        in_use::note("recv", vec![array.in_use("x")], &request.watch());
        Ok(Request::new(
            request,
            Gives::Status,
            array.keepers().into(),
            None,
        ))
    }

    /// Sends x and receives into out at once; neither waits for the other. Returns the Status of
    /// what was received.
    #[pyo3(
        signature = (
            x, to, out, source, *, send_tag=Whole::Is(0), recv_tag=Whole::Is(0), timeout=None
        ),
        text_signature = "($self, x, to, out, source, *, send_tag=0, recv_tag=0, timeout=None)"
    )]
    #[allow(
        clippy::too_many_arguments,
        reason = "those of a send and of a receive"
    )]
    fn sendrecv(
        &self,
        x: &Bound<'_, PyAny>,
        to: Whole,
        out: &Bound<'_, PyAny>,
        source: Whole,
        send_tag: Whole,
        recv_tag: Whole,
        timeout: Option<Seconds>,
    ) -> PyResult<Py<PyAny>> {
        let py = x.py();
        let receive = self.irecv(out, source, recv_tag, timeout)?;
        let send = self.isend(x, to, send_tag, timeout)?;
        if group::is_open() {
            group::add(py, receive)?;
            group::add(py, send)?;
            return status(py, &Status::default());
        }
        let known = receive.wait(py);
        send.wait(py)?;
        known
    }

    /// Waits until an array is there that recv with the same arguments would take; returns its
    /// Status.
    #[pyo3(
        signature = (source=Whole::Is(ANY), tag=Whole::Is(ANY), *, timeout=None),
        text_signature = "($self, source=-1, tag=-1, *, timeout=None)"
    )]
    fn probe(
        &self,
        py: Python<'_>,
        source: Whole,
        tag: Whole,
        timeout: Option<Seconds>,
    ) -> PyResult<Py<PyAny>> {
        let (source, tag) = (self::source(self.place(py)?, source)?, wanted(tag)?);
        let timeout = argument::seconds("timeout", timeout)?;
        status(
            py,
            &self.call(py, |handle| handle.probe_within(source, tag, timeout))?,
        )
    }

    /// The Status of an array that is there now, as probe; None where there is none.
    #[pyo3(
        signature = (source=Whole::Is(ANY), tag=Whole::Is(ANY)),
        text_signature = "($self, source=-1, tag=-1)"
    )]
    fn try_probe(&self, py: Python<'_>, source: Whole, tag: Whole) -> PyResult<Option<Py<PyAny>>> {
        let (source, tag) = (self::source(self.place(py)?, source)?, wanted(tag)?);
        let known = self.call(py, |handle| handle.try_probe(source, tag))?;
        known.map(|known| status(py, &known)).transpose()
    }
}
