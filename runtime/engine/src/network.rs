//! This rank's place on the network, and its connections to those that share no memory with it.

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rlaunch_transport::tcp::handshake::Identity;
use rlaunch_transport::tcp::{
    self, Interface, NoInterface, Routes, TcpConnection, TcpEndpoint, TcpPeer,
};

use rlaunch_wire::environment;

use crate::Error;
use crate::card::Card;
use crate::config::{Config, Rendezvous};
use crate::core::Peer;

/// Where this rank can be reached, before anybody is known.
#[derive(Debug)]
pub(crate) struct Network {
    listener: TcpListener,
    port: u16,
    interfaces: Vec<Interface>,
    /// Whether some interface leads to other hosts. Loopback serves within one.
    outward: Result<(), NoInterface>,
}

/// Sockets to a peer on another host for large messages: flows are often limited one by one, by
/// clouds as well as by the one core that serves each.
const SOCKETS_BETWEEN_HOSTS: usize = 4;
/// Inside a host the processor is the limit, and a second socket only costs.
const SOCKETS_INSIDE_HOST: usize = 1;

impl Network {
    /// Listens, where the configuration allows and needs it.
    /// `listener`: one that serves already.
    pub(crate) fn open(
        config: &Config,
        listener: Option<TcpListener>,
    ) -> Result<Option<Self>, Error> {
        let is_alone = config.rendezvous == Rendezvous::Alone || config.world_size == 1;
        if !config.transports.tcp || is_alone {
            return Ok(None);
        }
        let options = &config.tcp;
        let failed = |what: &'static str| {
            move |error: std::io::Error| Error::Init(format!("{what}: {error}"))
        };
        let listener = match listener {
            Some(listener) => listener,
            None => tcp::listen(options.family, options.ports.as_ref())
                .map_err(failed("listening on TCP"))?,
        };
        let all = tcp::interfaces().map_err(failed("reading this host's addresses"))?;
        // What others name is for their libraries, and perhaps for other hosts.
        let own =
            |filter: &&tcp::InterfaceFilter| filter.source() == environment::RLAUNCH_SOCKET_IFNAME;
        if let Some(filter) = options.filter.as_ref().filter(own) {
            let matches = filter.check_matches(&all);
            matches.map_err(|error| Error::Init(error.to_string()))?;
        }
        let (interfaces, outward) = tcp::choose(&all, options.filter.as_ref(), options.family);
        let port = listener.local_addr().map_err(failed("listening on TCP"))?;
        Ok(Some(Self {
            listener,
            port: port.port(),
            interfaces,
            outward,
        }))
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// For this rank's card: those that lead to other hosts first, since cards have limits.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let mut interfaces: Vec<&Interface> = self.interfaces.iter().collect();
        interfaces.sort_by_key(|interface| (interface.is_loopback, interface.address.is_ipv6()));
        interfaces
            .iter()
            .map(|interface| interface.address)
            .collect()
    }

    /// Gives every rank that shares no memory a connection, made when first used.
    pub(crate) fn connect(
        self,
        config: &Config,
        cards: &[Card],
        identity: Identity,
        peers: &mut [Peer],
    ) -> Result<Arc<TcpEndpoint>, Error> {
        let me = &cards[identity.rank as usize];
        let silence_max = silence_max(config);
        let endpoint = TcpEndpoint::new(self.listener, identity, silence_max)
            .map_err(|error| Error::Init(format!("listening on TCP: {error}")))?;
        let endpoint = Arc::new(endpoint);
        let asked_for = config.tcp.filter.as_ref();
        let asked_for = asked_for.is_some_and(|filter| filter.is_positive());
        for card in cards {
            let peer = &mut peers[card.rank as usize];
            if card.rank == me.rank || peer.connection.is_some() {
                continue;
            }
            let same_host = card.shares_host(me);
            if !same_host && let Err(error) = &self.outward {
                return Err(Error::Init(format!(
                    "rank {} (host {}) has no way to rank {} (host {}): {error}",
                    me.rank, me.host, card.rank, card.host
                )));
            }
            let addresses: Vec<IpAddr> = card
                .addresses
                .iter()
                .filter_map(|address| address.parse().ok())
                .collect();
            let port = card.tcp_port as u16;
            let routes = Routes::new(&self.interfaces, &addresses, port, same_host, asked_for);
            let sockets = config.tcp.sockets.unwrap_or(if same_host {
                SOCKETS_INSIDE_HOST
            } else {
                SOCKETS_BETWEEN_HOSTS.max(routes.rails.len())
            });
            let connection = TcpConnection::new(
                endpoint.clone(),
                TcpPeer {
                    rank: card.rank,
                    routes,
                    port,
                    sockets,
                },
            );
            peer.connection = Some(Box::new(connection));
        }
        Ok(endpoint)
    }
}

/// The launcher watches over hosts and knows the user's --host-timeout (30 s by default), and what
/// it says names the host. So under an agent connections wait longer and end only what no launcher
/// sees: two hosts that reach it but not each other.
fn silence_max(config: &Config) -> Duration {
    match config.rendezvous {
        Rendezvous::Agent { .. } => Duration::from_secs(120),
        Rendezvous::Alone | Rendezvous::Star { .. } => Duration::from_secs(30),
    }
}

/// Every rank that shares no memory with this one must allow TCP, as this one must.
pub(crate) fn check_allowed(me: usize, cards: &[Card], peers: &[Peer]) -> Result<bool, Error> {
    let mut needed = false;
    for (card, peer) in cards.iter().zip(peers) {
        if card.rank as usize == me || peer.connection.is_some() {
            continue;
        }
        needed = true;
        if !card.allows_tcp || !cards[me].allows_tcp {
            return Err(Error::Init(format!(
                "ranks {me} (host {}) and {} (host {}) share no memory and RLAUNCH_TRANSPORT \
                 forbids tcp",
                cards[me].host, card.rank, card.host
            )));
        }
    }
    Ok(needed)
}
