//! Where the ranks meet, if the user says so.

use std::net::IpAddr;

use super::SettingsError;
use super::value::{address, port};
use crate::cli::Options;

#[derive(Debug, Clone)]
pub struct Rendezvous {
    pub master_address: Option<IpAddr>,
    pub master_port: Option<u16>,
    pub hold_port: bool,
}

pub(super) fn rendezvous(options: &Options) -> Result<Rendezvous, SettingsError> {
    Ok(Rendezvous {
        master_address: address(options.rendezvous.master_addr.as_deref())?,
        master_port: port("--master-port", options.rendezvous.master_port.as_deref())?,
        hold_port: !options.rendezvous.no_port_hold,
    })
}
