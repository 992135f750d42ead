//! Which connections a server holds: a bound in total, a bound per peer, and who has to go when one is reached.
//!
//! A connection that waits for its peer (nothing sent yet, half a request head, an idle keep-alive) costs the peer nothing
//! and us a slot. So such a connection gives way: when a bound is reached, the oldest waiting one of the peer that holds
//! the most is closed. Connections with a request in hand are never closed for others; when none waits, the new one is.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// Bounds of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at once.
    pub total: usize,
    /// Connections at once from one address.
    pub per_peer: usize,
}

/// The connections of one server. Cheap to clone.
#[derive(Clone)]
pub struct Connections {
    limits: ConnectionLimits,
    table: Arc<Mutex<Table>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Table {
    next: u64,
    open: HashMap<u64, Entry>,
    per_peer: HashMap<IpAddr, usize>,
}

struct Entry {
    peer: IpAddr,
    /// Requests in hand; 0 while it waits for its peer.
    busy: usize,
    /// When it began to wait; only grows from entry to entry.
    since: u64,
    close: CancellationToken,
}

impl Table {
    fn remove(&mut self, id: u64) {
        let Some(entry) = self.open.remove(&id) else { return };
        if let Some(count) = self.per_peer.get_mut(&entry.peer) {
            *count -= 1;
            if *count == 0 {
                self.per_peer.remove(&entry.peer);
            }
        }
    }

    /// The oldest waiting connection of `peer`, or of whoever holds the most.
    fn victim(&self, peer: Option<IpAddr>) -> Option<u64> {
        let held = |entry: &Entry| self.per_peer.get(&entry.peer).copied().unwrap_or_default();
        self.open
            .iter()
            .filter(|(_, entry)| entry.busy == 0 && peer.is_none_or(|peer| peer == entry.peer))
            .max_by_key(|(_, entry)| (held(entry), std::cmp::Reverse(entry.since)))
            .map(|(id, _)| *id)
    }

    fn give_way(&mut self, peer: Option<IpAddr>) -> bool {
        let Some(id) = self.victim(peer) else { return false };
        if let Some(entry) = self.open.get(&id) {
            entry.close.cancel();
        }
        self.remove(id);
        true
    }

    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Connections {
    /// None yet.
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { limits, table: Arc::default() }
    }

    /// A place for a new connection of `peer`; none when all that could give way are busy.
    pub fn admit(&self, peer: IpAddr) -> Option<Admitted> {
        let mut table = self.lock();
        if table.per_peer.get(&peer).is_some_and(|held| *held >= self.limits.per_peer) && !table.give_way(Some(peer)) {
            return None;
        }
        if table.open.len() >= self.limits.total && !table.give_way(None) {
            return None;
        }
        let (id, close) = (table.tick(), CancellationToken::new());
        table.open.insert(id, Entry { peer, busy: 0, since: id, close: close.clone() });
        *table.per_peer.entry(peer).or_default() += 1;
        drop(table);
        Some(Admitted { place: Arc::new(Place { id, connections: self.clone() }), close })
    }

    /// How many there are.
    pub fn open(&self) -> usize {
        self.lock().open.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place. Given back when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Admitted {
    place: Arc<Place>,
    close: CancellationToken,
}

#[derive(Debug)]
struct Place {
    id: u64,
    connections: Connections,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().remove(self.id);
    }
}

impl Admitted {
    /// Ends when the connection has to give way.
    pub async fn must_close(&self) {
        self.close.cancelled().await;
    }

    /// Marks the connection as busy until the answer is dropped.
    pub fn busy(&self) -> Busy {
        let mut table = self.place.connections.lock();
        if let Some(entry) = table.open.get_mut(&self.place.id) {
            entry.busy += 1;
        }
        drop(table);
        Busy(Arc::clone(&self.place))
    }
}

/// A request in hand.
#[derive(Debug)]
pub struct Busy(Arc<Place>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut table = self.0.connections.lock();
        let now = table.tick();
        if let Some(entry) = table.open.get_mut(&self.0.id) {
            entry.busy = entry.busy.saturating_sub(1);
            entry.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn closed(connection: &Admitted) -> bool {
        connection.close.is_cancelled()
    }

    #[test]
    fn the_oldest_waiting_connection_of_whoever_holds_most_gives_way() {
        let connections = Connections::new(ConnectionLimits { total: 4, per_peer: 4 });
        let honest = connections.admit(peer(1)).unwrap();
        let flood: Vec<Admitted> = (0..3).map(|_| connections.admit(peer(2)).unwrap()).collect();
        let next = connections.admit(peer(3)).unwrap();
        assert!(closed(&flood[0]) && !closed(&flood[1]) && !closed(&honest));
        assert_eq!(connections.open(), 4);
        drop((flood, next));
        assert_eq!(connections.open(), 1);
    }

    #[test]
    fn one_peer_displaces_only_its_own() {
        let connections = Connections::new(ConnectionLimits { total: 10, per_peer: 2 });
        let honest = connections.admit(peer(1)).unwrap();
        let flood: Vec<Admitted> = (0..50).map(|_| connections.admit(peer(2)).unwrap()).collect();
        assert_eq!(connections.open(), 3);
        assert!(!closed(&honest) && closed(&flood[0]) && !closed(&flood[49]));
    }

    #[test]
    fn a_busy_connection_never_gives_way() {
        let connections = Connections::new(ConnectionLimits { total: 2, per_peer: 2 });
        let (first, second) = (connections.admit(peer(1)).unwrap(), connections.admit(peer(1)).unwrap());
        let (busy, also) = (first.busy(), second.busy());
        assert!(connections.admit(peer(2)).is_none());
        drop(also);
        assert!(connections.admit(peer(2)).is_some());
        assert!(!closed(&first) && closed(&second));
        drop(busy);
    }
}
