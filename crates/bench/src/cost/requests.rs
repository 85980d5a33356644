//! Counts the requests in what a client sends.

/// How the requests of a protocol are told apart.
pub(super) enum Requests {
    /// One at a time: all that is sent until the server answers is one.
    Turns { answered: bool },
    /// HTTP/2: each begins with a frame of headers.
    Frames { greeting: usize, head: Vec<u8>, payload: usize },
    /// NATS: each is a message. Pings and subscriptions aren't counted.
    Messages { line: Vec<u8>, payload: usize },
}

impl Requests {
    /// The right way for a URL.
    pub(super) fn of(url: &str) -> Self {
        match url.split(':').next() {
            // A client begins with 24 bytes that are no frame.
            Some("etcd") => Self::Frames { greeting: 24, head: Vec::new(), payload: 0 },
            Some("nats") => Self::Messages { line: Vec::new(), payload: 0 },
            _ => Self::Turns { answered: true },
        }
    }

    /// How many requests begin in what was sent.
    pub(super) fn sent(&mut self, bytes: &[u8]) -> u64 {
        match self {
            Self::Turns { answered } => u64::from(std::mem::take(answered)),
            Self::Frames { .. } | Self::Messages { .. } => {
                bytes.iter().map(|byte| u64::from(self.begins(*byte))).sum()
            }
        }
    }

    /// The server has said something.
    pub(super) fn answered(&mut self) {
        if let Self::Turns { answered } = self {
            *answered = true;
        }
    }

    /// Whether a request begins with what ends in this byte.
    fn begins(&mut self, byte: u8) -> bool {
        match self {
            Self::Turns { .. } => false,
            Self::Frames { greeting: left @ 1.., .. } => {
                *left -= 1;
                false
            }
            Self::Frames { payload: left @ 1.., .. }
            | Self::Messages { payload: left @ 1.., .. } => {
                *left -= 1;
                false
            }
            Self::Frames { head, payload, .. } => {
                head.push(byte);
                let [high, middle, low, kind, _, _, _, _, _] = head[..] else { return false };
                *payload = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                head.clear();
                kind == 1
            }
            Self::Messages { line, payload } => {
                line.push(byte);
                if byte != b'\n' {
                    return false;
                }
                let text = String::from_utf8_lossy(line).into_owned();
                line.clear();
                let message = text.starts_with("PUB ") || text.starts_with("HPUB ");
                if message {
                    let length = text.split_whitespace().last().and_then(|it| it.parse().ok());
                    *payload = length.map_or(0, |length: usize| length + 2);
                }
                message
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_in_every_protocol() {
        let mut turns = Requests::of("redis://x");
        assert_eq!(turns.sent(b"one") + turns.sent(b"of it"), 1);
        turns.answered();
        assert_eq!(turns.sent(b"two"), 1);

        let mut frames = Requests::of("etcd://x");
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let headers = [0, 0, 2, 1, 4, 0, 0, 0, 1, 7, 7];
        let data = [0, 0, 1, 0, 1, 0, 0, 0, 1, 7];
        let sent = [&[0; 24][..], &settings, &headers, &data, &headers].concat();
        let (first, second) = sent.split_at(40);
        assert_eq!(frames.sent(first) + frames.sent(second), 2);

        let mut messages = Requests::of("nats://x");
        let sent = b"PING\r\nPUB a.b reply 5\r\nPUB x\r\nHPUB a reply 2 4\r\nabcd\r\nSUB x 1\r\n";
        assert_eq!(messages.sent(sent), 2);
    }
}
