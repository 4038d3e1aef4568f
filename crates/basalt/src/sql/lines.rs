//! Where lines come from: a text that was given, standard input, or the one and then the other.

use anyhow::{Context, Result};
use std::io::{BufRead, IsTerminal};
use tokio::sync::mpsc::{Receiver, channel};

const LINES_WAITING: usize = 64;

pub struct Lines {
    text: std::vec::IntoIter<String>,
    /// What comes when the text has ended.
    input: Option<Input>,
}

enum Input {
    Unread,
    Reading(Receiver<std::io::Result<String>>),
}

impl Lines {
    pub fn of_input() -> Lines {
        Lines { text: Vec::new().into_iter(), input: Some(Input::Unread) }
    }

    pub fn of_text(text: &str) -> Lines {
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_string).collect();
        Lines { text: lines.into_iter(), input: None }
    }

    /// COPY in it takes its data from the lines that follow or, if there are none, from standard input.
    pub fn read_on_from_input(&mut self) {
        if self.text.as_slice().is_empty() && self.input.is_none() {
            self.input = Some(Input::Unread);
        }
    }

    /// Whether somebody types them.
    pub fn are_typed(&self) -> bool {
        self.input.is_some() && std::io::stdin().is_terminal()
    }

    /// The next line with its end; `None` behind the last one. Can be dropped while it waits: no line is lost.
    pub async fn next(&mut self) -> Result<Option<String>> {
        if let Some(line) = self.text.next() {
            return Ok(Some(line));
        }
        let Some(input) = &mut self.input else { return Ok(None) };
        let received = match input {
            Input::Reading(received) => received,
            Input::Unread => {
                *input = Input::Reading(read_input());
                let Input::Reading(received) = input else { return Ok(None) };
                received
            }
        };
        received.recv().await.transpose().context("cannot read standard input")
    }
}

/// On a thread of its own: a read of a terminal cannot be canceled.
fn read_input() -> Receiver<std::io::Result<String>> {
    let (lines, received) = channel(LINES_WAITING);
    std::thread::spawn(move || {
        loop {
            let mut line = String::new();
            let line = match std::io::stdin().lock().read_line(&mut line) {
                Ok(0) => return,
                Ok(_) => Ok(line),
                Err(error) => Err(error),
            };
            let failed = line.is_err();
            if lines.blocking_send(line).is_err() || failed {
                return;
            }
        }
    });
    received
}
