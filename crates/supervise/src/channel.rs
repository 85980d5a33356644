//! Messages between processes: one packet each, with a file descriptor if need be.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest message.
const LARGEST: usize = 128 * 1024;

/// One end of a conversation between two processes. The other end is closed when the process
/// that has it is gone, which shows as the end of the messages.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

impl Channel {
    /// Two ends; the second is for the standard input of a process to be started.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(one), other))
    }

    /// The end that this process was given as its standard input.
    pub(crate) fn inherited() -> io::Result<Self> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        // Whoever starts a role by hand has no such thing there.
        rustix::net::sockopt::socket_type(&stdin)?;
        Ok(Self(stdin))
    }

    pub(crate) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        self.send_with(message, None)
    }

    pub(crate) fn send_with(
        &self,
        message: &impl Serialize,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Whether the next message, or the end of them, is there already.
    pub(crate) fn is_ready(&self) -> bool {
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// The next message, or nothing if the other end is closed.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Option<OwnedFd>)>> {
        let mut bytes = vec![0; LARGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) => break received,
                // The kernel says once that the other end was closed before it had read all. What
                // that end said before is still to come, and after it the end.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
                Err(error) => return Err(error.into()),
            }
        };
        if received.bytes == 0 {
            return Ok(None);
        }
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(io::Error::other("a message is too large"));
        }
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let message = serde_json::from_slice(bytes.get(..received.bytes).unwrap_or_default())?;
        Ok(Some((message, descriptor)))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_with_what_comes_along_and_end() {
        let (one, other) = Channel::pair().unwrap();
        let other = Channel(other);
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        one.send(&"first").unwrap();
        one.send_with(&("second", 2), Some(writer.as_fd())).unwrap();
        drop((one, writer));
        assert!(other.is_ready());
        let (first, nothing) = other.receive::<String>().unwrap().unwrap();
        assert_eq!((first.as_str(), nothing.is_none()), ("first", true));
        let (second, writer) = other.receive::<(String, u32)>().unwrap().unwrap();
        assert_eq!(second, ("second".to_owned(), 2));
        rustix::io::write(writer.unwrap(), b"through").unwrap();
        let mut read = [0; 16];
        assert_eq!(rustix::io::read(&reader, &mut read).unwrap(), 7);
        assert!(other.receive::<String>().unwrap().is_none(), "the other end is closed");
    }

    #[test]
    fn o40_last_words_are_heard_although_the_speaker_had_not_read_all() {
        let (one, other) = Channel::pair().unwrap();
        let other = Channel(other);
        one.send(&"an order that comes too late").unwrap();
        other.send(&"last words").unwrap();
        drop(other);
        let (last, _) = one.receive::<String>().unwrap().expect("what was said before the end");
        assert_eq!(last, "last words");
        assert!(one.receive::<String>().unwrap().is_none(), "the other end is closed");
    }
}
