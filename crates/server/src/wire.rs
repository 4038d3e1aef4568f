//! The byte stream under a connection: TCP, Unix socket, or TLS over TCP.

use futures::FutureExt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

pub enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that no reactor knows, or does not know any more.
pub enum Socket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Socket {
    /// Gives it to the reactor of this thread.
    pub fn adopt(self) -> io::Result<Wire> {
        match self {
            Socket::Tcp(socket) => TcpStream::from_std(socket).map(Wire::Tcp),
            Socket::Unix(socket) => UnixStream::from_std(socket).map(Wire::Unix),
        }
    }
}

impl Wire {
    /// Takes it from its reactor.
    pub fn release(self) -> io::Result<Socket> {
        match self {
            Wire::Tcp(stream) => stream.into_std().map(Socket::Tcp),
            Wire::Unix(stream) => stream.into_std().map(Socket::Unix),
            Wire::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether another reactor may go on with it: all of its state is in the kernel.
    pub fn is_movable(&self) -> bool {
        matches!(self, Wire::Tcp(_) | Wire::Unix(_))
    }

    pub fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Wire::Tcp(stream) => Some(stream),
            Wire::Unix(_) | Wire::Tls(_) => None,
        }
    }

    /// Whether the peer has closed its side. Bytes that it sent before may still be there to be read.
    pub fn is_closed(&self) -> bool {
        let ready = match self {
            Wire::Tcp(stream) => stream.ready(Interest::READABLE).now_or_never(),
            Wire::Tls(stream) => stream.get_ref().0.ready(Interest::READABLE).now_or_never(),
            Wire::Unix(stream) => stream.ready(Interest::READABLE).now_or_never(),
        };
        matches!(ready, Some(Ok(ready)) if ready.is_read_closed())
    }
}

macro_rules! each {
    ($self:expr, $stream:ident => $body:expr) => {
        match $self.get_mut() {
            Wire::Tcp($stream) => $body,
            Wire::Unix($stream) => $body,
            Wire::Tls($stream) => $body,
        }
    };
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
