//! `--preload`: brings files to hosts that don't share them, over the streams that are there.
//!
//! Every host is asked first what it lacks and what differs, so that nothing is copied to any of them
//! if one refuses. A host that has a file already, as by a shared file system, gets nothing.

mod collect;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use rlaunch_control::v1::{CompareRequest, FileKind, PreloadChunk};
use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::details::HostDetails;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tracing::info;

use super::DriveError;
use super::launch::lossy;
use super::reach::Reached;
use super::start::Start;
use crate::settings::Settings;
use collect::Item;

/// One message of a transfer.
const CHUNK_BYTES: usize = 1 << 20;
/// Messages under way to one host.
const QUEUE_MAX: usize = 2;
/// Hosts that are sent to at a time: the network from here is what is shared.
const HOSTS_AT_ONCE: usize = 8;
/// Entries of one comparison: paths are at most 4 KiB, and a message 16 MiB.
const COMPARED_AT_ONCE: usize = 2000;
/// Differences told.
const SHOWN_MAX: usize = 8;

pub(super) async fn preload(
    settings: &Settings,
    allocation: &Allocation,
    nodes: &mut [Reached],
) -> Result<(), DriveError> {
    let paths = &settings.preload.paths;
    let in_place = paths.iter().all(|path| path.from == path.to);
    let mut nodes: Vec<&mut Reached> = nodes
        .iter_mut()
        .filter(|node| !(node.local && in_place))
        .collect();
    let items = collect(settings).await?;
    let items: Vec<Vec<Item>> = nodes
        .iter()
        .map(|node| placed(settings, &allocation.hosts[node.host].details, &items))
        .collect();
    let compared = nodes.iter_mut().zip(&items);
    let compared = compared.map(|(node, items)| compare(node, items));
    let compared: Vec<Compared> = join_all(compared)
        .await
        .into_iter()
        .collect::<Result<_, _>>()?;
    let mut lacking = Vec::new();
    let mut refused = Vec::new();
    for ((node, items), compared) in nodes.iter().zip(&items).zip(compared) {
        let mut wanted: Vec<(usize, bool)> = compared
            .lacking
            .into_iter()
            .map(|index| (index, false))
            .collect();
        for (index, how) in compared.differing {
            let is_file = items[index].entry.kind() == FileKind::File;
            if settings.preload.replace && is_file && !how.starts_with("is no file") {
                wanted.push((index, true));
            } else {
                let path = lossy(&items[index].entry.path);
                refused.push(format!("{}: {path} {how}", node.name));
            }
        }
        wanted.sort_unstable();
        lacking.push(wanted);
    }
    if !refused.is_empty() {
        return Err(DriveError::PreloadDiffers(shown(&refused)));
    }
    let sent = nodes
        .into_iter()
        .zip(&items)
        .zip(lacking)
        .filter(|(_, wanted)| !wanted.is_empty())
        .map(|((node, items), wanted)| {
            let details = &allocation.hosts[node.host].details;
            send(settings, details, node, items, wanted)
        });
    let mut sent = stream::iter(sent).buffer_unordered(HOSTS_AT_ONCE);
    while let Some(result) = sent.next().await {
        result?;
    }
    Ok(())
}

/// Where the items stand on a host that has a directory of its own.
fn placed(settings: &Settings, details: &HostDetails, items: &[Item]) -> Vec<Item> {
    let programs = settings.programs.iter();
    let moved: Vec<(&Path, PathBuf)> = programs
        .map(|program| {
            let own = Start::new(program, details).directory();
            (program.directory.as_path(), own)
        })
        .collect();
    let mut items = items.to_vec();
    for item in &mut items {
        let Some((from, to)) = item.program.map(|program| &moved[program]) else {
            continue;
        };
        let path = Path::new(OsStr::from_bytes(&item.entry.path));
        if let Ok(below) = path.strip_prefix(from) {
            let there: PathBuf = to.join(below).components().collect();
            item.entry.path = there.into_os_string().into_encoded_bytes().into();
        }
    }
    items
}

async fn collect(settings: &Settings) -> Result<Vec<Item>, DriveError> {
    let paths = settings.preload.paths.clone();
    let collected = tokio::task::spawn_blocking(move || collect::collect(&paths)).await;
    let collected = collected.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
    collected.map_err(|(path, error)| DriveError::PreloadRead {
        path: path.display().to_string(),
        error,
    })
}

/// Numbers of items.
#[derive(Default)]
struct Compared {
    lacking: Vec<usize>,
    differing: Vec<(usize, String)>,
}

async fn compare(node: &mut Reached, items: &[Item]) -> Result<Compared, DriveError> {
    let mut compared = Compared::default();
    for (part, items) in items.chunks(COMPARED_AT_ONCE).enumerate() {
        let first = part * COMPARED_AT_ONCE;
        let request = CompareRequest {
            entries: items.iter().map(|item| item.entry.clone()).collect(),
        };
        let reply = node.client.compare(request).await;
        let reply = reply
            .map_err(|status| failed(node, status.message()))?
            .into_inner();
        let lacking = reply
            .lacking
            .into_iter()
            .map(|number| first + number as usize);
        compared.lacking.extend(lacking);
        let differing = reply.differing.into_iter();
        compared
            .differing
            .extend(differing.map(|one| (first + one.entry as usize, one.how)));
    }
    Ok(compared)
}

async fn send(
    settings: &Settings,
    details: &HostDetails,
    node: &mut Reached,
    items: &[Item],
    wanted: Vec<(usize, bool)>,
) -> Result<(), DriveError> {
    let bytes: u64 = wanted
        .iter()
        .map(|(index, _)| items[*index].entry.bytes)
        .sum();
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let items: Vec<Item> = wanted
        .iter()
        .map(|&(index, replace)| {
            let mut item = items[index].clone();
            item.entry.replace = replace;
            item
        })
        .collect();
    let count = items.len();
    let made = |directory: &Path| {
        let mut paths = items.iter().map(|item| OsStr::from_bytes(&item.entry.path));
        paths.any(|path| Path::new(path).starts_with(directory))
    };
    let programs = settings.programs.iter();
    let made: Vec<bool> = programs
        .map(|program| made(&Start::new(program, details).directory()))
        .collect();
    let reading = tokio::task::spawn_blocking(move || read_all(&items, &sender));
    let reply = node.client.preload(ReceiverStream::new(receiver)).await;
    // The file that could not be read says more than the stream that broke for it.
    if let Ok(Err((path, error))) = reading.await {
        return Err(DriveError::PreloadRead { path, error });
    }
    reply.map_err(|status| failed(node, status.message()))?;
    for (found, made) in node.survey.programs.iter_mut().zip(made) {
        found.directory_exists |= made;
    }
    info!(host = node.name, count, bytes, "preloaded");
    Ok(())
}

/// Reads file after file into the stream; ends early when nobody takes it any more.
fn read_all(
    items: &[Item],
    sender: &mpsc::Sender<PreloadChunk>,
) -> Result<(), (String, std::io::Error)> {
    for item in items {
        let at = |error| (item.from.display().to_string(), error);
        let mut chunk = PreloadChunk {
            entry: Some(item.entry.clone()),
            ..PreloadChunk::default()
        };
        if item.entry.kind() != FileKind::File {
            if sender.blocking_send(chunk).is_err() {
                return Ok(());
            }
            continue;
        }
        let mut file = File::open(&item.from).map_err(at)?.take(item.entry.bytes);
        let mut left = item.entry.bytes;
        loop {
            let mut data = Vec::new();
            let part = file
                .by_ref()
                .take(CHUNK_BYTES as u64)
                .read_to_end(&mut data);
            left -= part.map_err(at)? as u64;
            if data.is_empty() && left > 0 {
                return Err(at(std::io::Error::other("it has become shorter meanwhile")));
            }
            chunk.data = data.into();
            chunk.last = left == 0;
            let last = chunk.last;
            if sender.blocking_send(std::mem::take(&mut chunk)).is_err() || last {
                break;
            }
        }
    }
    Ok(())
}

fn failed(node: &Reached, message: &str) -> DriveError {
    DriveError::Agent {
        host: node.name.clone(),
        did: "cannot take the files of --preload",
        message: message.to_owned(),
    }
}

fn shown(lines: &[String]) -> String {
    let mut text = lines[..lines.len().min(SHOWN_MAX)].join("\n");
    if lines.len() > SHOWN_MAX {
        text.push_str(&format!("\nand {} more", lines.len() - SHOWN_MAX));
    }
    text
}
