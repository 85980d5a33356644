//! What goes over a path, as far as it is understood.

/// How requests and answers of a protocol are told apart.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    protocol: Protocol,
    /// Words that are counted where a client sends them. One that two reads share isn't: tests send
    /// little at a time.
    pub(super) words: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// One at a time: all that is sent until the server answers is one request.
    Turns,
    /// HTTP/2: each request and each answer begins with a frame of headers.
    Frames,
    /// NATS: each request is a message. Pings and subscriptions aren't counted. Only what follows
    /// one of the words is an answer.
    Messages,
}

impl Wire {
    /// Client and server take turns.
    pub const TURNS: Self = Self { protocol: Protocol::Turns, words: &[] };
    /// Redis: each call of a script is counted as a word.
    pub const REDIS: Self = Self { protocol: Protocol::Turns, words: &["EVAL"] };
    /// HTTP/1.1, with what is read and written as words.
    pub const HTTP: Self = Self { protocol: Protocol::Turns, words: &["PUT /", "GET /"] };
    /// etcd: HTTP/2.
    pub const ETCD: Self = Self { protocol: Protocol::Frames, words: &[] };
    /// NATS, with writes to keys of a bucket as a word.
    pub const NATS: Self = Self { protocol: Protocol::Messages, words: &["HPUB $KV."] };

    /// What goes over a path to the server of a URL.
    pub(super) fn of(url: &str) -> Self {
        match url.split(':').next() {
            Some("etcd") => Self::ETCD,
            Some("nats") => Self::NATS,
            Some("redis") => Self::REDIS,
            Some("s3" | "gs" | "az") => Self::HTTP,
            _ => Self::TURNS,
        }
    }
}

/// What has been heard on one connection.
pub(super) struct Ear {
    wire: Wire,
    up: Frames,
    down: Frames,
    messages: Messages,
    /// The server has spoken since the last request.
    answered: bool,
    /// One of the words was sent since the last answer.
    asked: bool,
}

impl Ear {
    pub(super) fn new(wire: Wire) -> Self {
        Self {
            wire,
            // A client begins with 24 bytes that are no frame.
            up: Frames { skipped: 24, ..Frames::default() },
            down: Frames::default(),
            messages: Messages::default(),
            answered: true,
            asked: false,
        }
    }

    /// How many requests begin in what a client sent.
    pub(super) fn hears_requests(&mut self, bytes: &[u8]) -> u64 {
        match self.wire.protocol {
            Protocol::Turns => u64::from(std::mem::take(&mut self.answered)),
            Protocol::Frames => self.up.headers(bytes),
            Protocol::Messages => self.messages.begun(bytes),
        }
    }

    /// The words in what a client sent, and how often.
    pub(super) fn hears_words(&mut self, bytes: &[u8]) -> Vec<(&'static str, u64)> {
        let times = |word: &str| {
            bytes.windows(word.len()).filter(|part| *part == word.as_bytes()).count() as u64
        };
        let words: Vec<_> = self.wire.words.iter().map(|word| (*word, times(word))).collect();
        self.asked |= words.iter().any(|(_, count)| *count > 0);
        words
    }

    /// Whether there is an answer to a request in what a server sent.
    pub(super) fn hears_answer(&mut self, bytes: &[u8]) -> bool {
        self.answered = true;
        match self.wire.protocol {
            Protocol::Turns => true,
            Protocol::Frames => self.down.headers(bytes) > 0,
            Protocol::Messages => std::mem::take(&mut self.asked),
        }
    }
}

/// Finds the frames of HTTP/2 that begin a message.
#[derive(Default)]
struct Frames {
    skipped: usize,
    head: Vec<u8>,
}

impl Frames {
    fn headers(&mut self, bytes: &[u8]) -> u64 {
        let mut count = 0;
        for &byte in bytes {
            if self.skipped > 0 {
                self.skipped -= 1;
                continue;
            }
            self.head.push(byte);
            if let [high, middle, low, kind, _, _, _, _, _] = self.head[..] {
                self.skipped =
                    usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                count += u64::from(kind == 1);
                self.head.clear();
            }
        }
        count
    }
}

/// Finds the messages of NATS.
#[derive(Default)]
struct Messages {
    skipped: usize,
    line: Vec<u8>,
}

impl Messages {
    fn begun(&mut self, bytes: &[u8]) -> u64 {
        let mut count = 0;
        for &byte in bytes {
            if self.skipped > 0 {
                self.skipped -= 1;
                continue;
            }
            self.line.push(byte);
            if byte == b'\n' {
                let text = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
                if text.starts_with("PUB ") || text.starts_with("HPUB ") {
                    let length = text.split_whitespace().last().and_then(|it| it.parse().ok());
                    self.skipped = length.map_or(0, |length: usize| length + 2);
                    count += 1;
                }
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_in_every_protocol() {
        let mut turns = Ear::new(Wire::of("redis://x"));
        assert_eq!(turns.hears_requests(b"one") + turns.hears_requests(b"of it"), 1);
        assert!(turns.hears_answer(b"so"));
        assert_eq!(turns.hears_requests(b"two"), 1);
        assert_eq!(turns.hears_words(b"EVALSHA EVAL"), [("EVAL", 2)]);

        let mut frames = Ear::new(Wire::of("etcd://x"));
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let headers = [0, 0, 2, 1, 4, 0, 0, 0, 1, 7, 7];
        let data = [0, 0, 1, 0, 1, 0, 0, 0, 1, 7];
        let sent = [&[0; 24][..], &settings, &headers, &data, &headers].concat();
        let (first, second) = sent.split_at(40);
        assert_eq!(frames.hears_requests(first) + frames.hears_requests(second), 2);
        assert!(!frames.hears_answer(&settings));
        assert!(frames.hears_answer(&headers));

        let mut messages = Ear::new(Wire::of("nats://x"));
        let sent =
            b"PING\r\nPUB a.b reply 5\r\nPUB x\r\nHPUB $KV.a reply 2 4\r\nabcd\r\nSUB x 1\r\n";
        assert_eq!(messages.hears_requests(sent), 2);
        assert!(!messages.hears_answer(b"+OK"));
        assert_eq!(messages.hears_words(sent), [("HPUB $KV.", 1)]);
        assert!(messages.hears_answer(b"+OK"));
    }
}
