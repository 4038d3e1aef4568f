//! The two sub-protocols of COPY.

use super::Fault;
use super::connection::Connection;
use super::frontend::{self, Frontend, malformed};
use basalt_query::{CopyIn, CopyOut};

impl Connection {
    /// Feeds the client's data to the session until CopyDone; returns the tag.
    pub(super) async fn copy_in(&mut self, mut copy: CopyIn) -> Result<String, Fault> {
        self.notices();
        self.client.out.copy_response(b'G', copy.format, copy.columns);
        self.client.flush().await?;
        loop {
            let message = self.client.input.message(&mut self.client.wire).await?;
            if message.tag == b'd' {
                self.session.copy_data(&mut copy, message.body).await?;
                continue;
            }
            match frontend::parse(message.tag, &message.body)? {
                Frontend::CopyDone => return Ok(self.session.copy_done(copy).await?),
                Frontend::CopyFail { message } => return Err(self.session.copy_fail(copy, message).await.into()),
                // A pipeline may hold them already.
                Frontend::Flush | Frontend::Sync => {}
                Frontend::Terminate => return Err(Fault::Closed),
                _ => {
                    let error = format!("unexpected message type 0x{:02X} during COPY from stdin", message.tag);
                    return Err(malformed(error).into());
                }
            }
        }
    }

    pub(super) async fn copy_out(&mut self, mut copy: CopyOut) -> Result<String, Fault> {
        self.client.out.copy_response(b'H', copy.format, copy.columns);
        while let Some(chunk) = self.client.unless_gone(copy.next(&mut self.session)).await? {
            for message in chunk.messages() {
                self.client.out.copy_data(message);
                self.client.flush_if_full().await?;
            }
        }
        self.client.out.copy_done();
        Ok(copy.tag())
    }
}
