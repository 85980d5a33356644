//! Three machines and whoever talks to them, in network namespaces of their own.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Three namespaces beside the one of this process. Each machine has a link to every other and
/// one to this process, so that any two can be parted while all others still reach each other.
pub(crate) struct Net {
    machines: Vec<Child>,
}

const MACHINES: usize = 3;

impl Net {
    /// This process has to be in a network namespace of its own already.
    pub(crate) fn new() -> Self {
        run("ip link set lo up && ip address add 10.77.0.100/32 dev lo");
        let net = Self { machines: (0..MACHINES).map(|_| machine()).collect() };
        net.machines.iter().for_each(settle);
        for machine in 0..MACHINES {
            let own = address(machine);
            net.inside(machine, &format!("ip link set lo up && ip address add {own}/32 dev lo"));
            let pid = net.pid(machine);
            run(&format!(
                "ip link add c{machine} type veth peer name c netns {pid} && \
                 ip link set c{machine} up"
            ));
            net.inside(machine, "ip link set c up");
            net.inside(machine, &format!("ip route add 10.77.0.100/32 dev c src {own}"));
            run(&format!("ip route add {own}/32 dev c{machine} src 10.77.0.100"));
        }
        for one in 0..MACHINES {
            for other in one + 1..MACHINES {
                let pid = net.pid(other);
                let pair = format!("ip link add m{other} type veth peer name m{one} netns {pid}");
                net.inside(one, &pair);
                net.join(one, other);
            }
        }
        net
    }

    /// Cuts one machine off from the others. This process still reaches all of them.
    pub(crate) fn cut_off(&self, machine: usize) {
        for other in (0..MACHINES).filter(|other| *other != machine) {
            self.inside(machine, &format!("ip link set m{other} down"));
            self.inside(other, &format!("ip link set m{machine} down"));
        }
    }

    /// Undoes [`Net::cut_off`].
    pub(crate) fn heal(&self, machine: usize) {
        for other in (0..MACHINES).filter(|other| *other != machine) {
            self.join(machine, other);
        }
    }

    fn join(&self, one: usize, other: usize) {
        for (here, there) in [(one, other), (other, one)] {
            let (own, theirs) = (address(here), address(there));
            self.inside(here, &format!("ip link set m{there} up"));
            self.inside(here, &format!("ip route replace {theirs}/32 dev m{there} src {own}"));
        }
    }

    /// A command that runs on this machine.
    pub(crate) fn command(&self, machine: usize, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.pid(machine), program]);
        command
    }

    fn inside(&self, machine: usize, script: &str) {
        finish(self.command(machine, "sh").args(["-c", script]));
    }

    fn pid(&self, machine: usize) -> String {
        self.machines.get(machine).unwrap().id().to_string()
    }
}

/// Where a machine can be reached, by all.
pub(crate) fn address(machine: usize) -> String {
    format!("10.77.0.{}", machine + 1)
}

/// A process that does nothing but have a namespace, until this one ends.
fn machine() -> Child {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig=KILL", "unshare", "--net", "sleep", "infinity"]);
    command.stdin(Stdio::null()).spawn().unwrap()
}

/// Waits until a machine is in a namespace of its own.
fn settle(machine: &Child) {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    for _ in 0..1000 {
        if namespace(&machine.id().to_string()).is_some_and(|own| Some(own) != namespace("self")) {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("no network namespace came to be");
}

fn run(script: &str) {
    finish(Command::new("sh").args(["-c", script]));
}

fn finish(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

impl Drop for Net {
    fn drop(&mut self) {
        for machine in &mut self.machines {
            let _ = machine.kill();
            let _ = machine.wait();
        }
    }
}
