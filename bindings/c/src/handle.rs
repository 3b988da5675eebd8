//! What C holds: pointers to objects that say what they are, so that a wrong or freed one is
//! refused.

use crate::error::Failure;
use rlaunch_runtime::{Communicator, Persistent, Request, SharedBuffer, Status, World};
use std::sync::atomic::{AtomicU64, Ordering};

/// The job, seen by one of its ranks.
pub struct rl_world {
    tag: Tag,
    pub(crate) world: World,
    pub(crate) comm: rl_comm,
}

/// A group of ranks that call together. Ranks count within it. Made by rl_comm_split and its like,
/// and freed by rl_comm_free; the world's own is rl_world_comm.
pub struct rl_comm {
    tag: Tag,
    pub(crate) handle: Communicator,
    /// The world's own can't be freed by itself.
    pub(crate) is_lent: bool,
}

/// A call under way, or one prepared to be started many times.
pub struct rl_request {
    tag: Tag,
    pub(crate) prepared: Option<Persistent>,
    pub(crate) under_way: Option<Request>,
    /// Of what has ended last.
    pub(crate) status: Status,
}

/// Memory that the ranks of a host read in place.
pub struct rl_buffer {
    tag: Tag,
    pub(crate) memory: SharedBuffer<u8>,
}

/// The first words of each object. Zero once it is freed.
pub(crate) struct Tag(AtomicU64);

pub(crate) trait Tagged {
    const TAG: u64;
    const NAME: &'static str;
    fn tag(&self) -> &Tag;
}

macro_rules! tagged {
    ($($type:ident: $tag:literal, $name:literal;)+) => {$(
        impl Tagged for $type {
            const TAG: u64 = u64::from_ne_bytes(*$tag);
            const NAME: &'static str = $name;
            fn tag(&self) -> &Tag {
                &self.tag
            }
        }
    )+};
}
tagged! {
    rl_world: b"rl_world", "an rl_world from rl_init";
    rl_comm: b"rl_comm\0", "an rl_comm";
    rl_request: b"rl_reque", "an rl_request";
    rl_buffer: b"rl_buffe", "an rl_buffer";
}

impl Tag {
    fn of<T: Tagged>() -> Self {
        Self(AtomicU64::new(T::TAG))
    }
}

impl rl_world {
    pub(crate) fn new(world: World) -> Self {
        let comm = rl_comm {
            is_lent: true,
            ..rl_comm::new((*world).clone())
        };
        Self {
            tag: Tag::of::<Self>(),
            world,
            comm,
        }
    }
}

impl rl_comm {
    pub(crate) fn new(handle: Communicator) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            handle,
            is_lent: false,
        }
    }
}

impl rl_request {
    pub(crate) fn new(prepared: Option<Persistent>, under_way: Option<Request>) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            prepared,
            under_way,
            status: Status::default(),
        }
    }
}

impl rl_buffer {
    pub(crate) fn new(memory: SharedBuffer<u8>) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            memory,
        }
    }
}

/// The object that C means.
///
/// # Safety
/// `pointer` is null, or points to memory that may be read and, where it is such an object, stays
/// one for `'a`.
pub(crate) unsafe fn get<'a, T: Tagged>(pointer: *const T) -> Result<&'a T, Failure> {
    if pointer.is_null() {
        let text = format!("NULL where {} should be", T::NAME);
        return Err(Failure::argument(&text));
    }
    if pointer.is_aligned() {
        // SAFETY: not null, aligned, and readable by the caller's word.
        let object = unsafe { &*pointer };
        if object.tag().0.load(Ordering::Relaxed) == T::TAG {
            return Ok(object);
        }
    }
    let text = format!(
        "a pointer that is not {}; hint: was it freed, or is it of another kind?",
        T::NAME
    );
    Err(Failure::argument(&text))
}

/// The same, to change it.
///
/// # Safety
/// As [`get`]; nobody else uses the object.
pub(crate) unsafe fn get_mut<'a, T: Tagged>(pointer: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's word.
    unsafe { get(pointer.cast_const())? };
    // SAFETY: checked just now, and alone by the caller's word.
    Ok(unsafe { &mut *pointer })
}

/// Hands an object to C.
///
/// # Safety
/// `to` is null or may be written to.
pub(crate) unsafe fn give<T>(name: &str, to: *mut *mut T, object: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument(&format!("{name} is NULL")));
    }
    let pointer = Box::into_raw(Box::new(object));
    // SAFETY: not null, and by the caller's word writable.
    unsafe { to.write(pointer) };
    Ok(())
}

/// Takes an object back from C.
///
/// # Safety
/// As [`get_mut`]; the pointer is not used again.
pub(crate) unsafe fn take<T: Tagged>(pointer: *mut T) -> Result<Box<T>, Failure> {
    // SAFETY: the caller's word.
    let object = unsafe { get(pointer.cast_const())? };
    object.tag().0.store(0, Ordering::Relaxed);
    // SAFETY: made by `give`, given up by the caller.
    Ok(unsafe { Box::from_raw(pointer) })
}
