//! A picture: a panel for each NUMA node, a box for each switch or host bridge, devices in them, and a
//! line from each GPU to its network devices where these stand in another box.

use std::fmt::Write;

use super::View;
use crate::layout::ranges;
use crate::machine::{Address, Place};

const DEVICE: (u32, u32) = (150, 34);
const GAP: u32 = 12;
const HEAD: u32 = 26;
const PANEL: u32 = DEVICE.0 * 2 + GAP * 5;
const TOP: u32 = 56;

struct Item {
    name: String,
    detail: String,
    is_gpu: bool,
    place: Place,
    /// Of its middle.
    at: (u32, u32),
}

pub fn svg(view: &View) -> String {
    svg_of(&[(String::new(), view.clone())])
}

/// Several machines one below the other, each with its hosts above.
pub fn svg_of(machines: &[(String, View)]) -> String {
    let mut body = String::new();
    let (mut width, mut height) = (0, 0);
    for (hosts, view) in machines {
        let picture = picture(hosts, view);
        // Its own coordinates, below those before it.
        let _ = writeln!(
            body,
            "<svg y=\"{height}\" width=\"{}\" height=\"{}\">\n{}</svg>",
            picture.width, picture.height, picture.body
        );
        width = width.max(picture.width);
        height += picture.height;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         {body}</svg>\n"
    )
}

struct Picture {
    width: u32,
    height: u32,
    body: String,
}

fn picture(hosts: &str, view: &View) -> Picture {
    let mut items = items(view);
    let mut nodes: Vec<Option<u32>> = view
        .machine
        .nodes
        .iter()
        .map(|it| Some(it.number))
        .collect();
    let is_homeless = |item: &Item| !nodes.contains(&item.place.node);
    if nodes.is_empty() || items.iter().any(is_homeless) {
        nodes.push(None);
    }
    let known = nodes.clone();
    let mut body = String::new();
    let mut height = TOP;
    for (index, node) in nodes.iter().enumerate() {
        let x = GAP + u32::try_from(index).unwrap_or_default() * (PANEL + GAP);
        let is_own = |item: &Item| match node {
            Some(_) => item.place.node == *node,
            None => !known.contains(&item.place.node) || item.place.node.is_none(),
        };
        let bottom = panel(&mut body, view, *node, x, &mut items, is_own);
        height = height.max(bottom);
    }
    lines(&mut body, view, &items);
    let width = GAP + u32::try_from(nodes.len()).unwrap_or_default() * (PANEL + GAP);
    let height = height + GAP;
    let product = view.machine.product.as_deref().unwrap_or("Unnamed machine");
    let title = match hosts {
        "" => product.to_owned(),
        hosts => format!("{hosts}: {product}"),
    };
    let title = escape(&title);
    let body = format!(
        "<text x=\"{GAP}\" y=\"24\" font-size=\"16\" fill=\"#222222\">{title}</text>\n\
         <text x=\"{GAP}\" y=\"42\" fill=\"#666666\">GPUs green, network devices blue; a line leads from a GPU to its network device</text>\n\
         {body}"
    );
    Picture {
        width,
        height,
        body,
    }
}

fn items(view: &View) -> Vec<Item> {
    let gpus = view.machine.gpus.iter().map(|gpu| Item {
        name: format!("GPU{}", gpu.number),
        detail: gpu.address.to_string(),
        is_gpu: true,
        place: gpu.place.clone(),
        at: (0, 0),
    });
    let rails = view.plan.rails.iter().map(|rail| Item {
        name: rail.name.clone(),
        detail: rail.rate_mbits.map(super::rate).unwrap_or_default(),
        is_gpu: false,
        place: rail.place.clone(),
        at: (0, 0),
    });
    gpus.chain(rails).collect()
}

/// Draws a NUMA node; where it ends.
fn panel(
    body: &mut String,
    view: &View,
    node: Option<u32>,
    x: u32,
    items: &mut [Item],
    is_own: impl Fn(&Item) -> bool,
) -> u32 {
    let mut inner = String::new();
    let mut y = TOP + HEAD;
    let mut groups: Vec<(Option<String>, Vec<Address>)> = Vec::new();
    for item in items.iter().filter(|item| is_own(item)) {
        let key = group(&item.place);
        if !groups.contains(&key) {
            groups.push(key);
        }
    }
    for key in groups {
        let members = items
            .iter_mut()
            .filter(|item| is_own(item) && group(&item.place) == key);
        let top = y;
        y += HEAD;
        let (mut left, mut right) = (y, y);
        for item in members {
            let (column, at) = match item.is_gpu {
                true => (x + GAP * 2, &mut left),
                false => (x + GAP * 3 + DEVICE.0, &mut right),
            };
            device(&mut inner, item, column, *at);
            item.at = (column + DEVICE.0 / 2, *at + DEVICE.1 / 2);
            *at += DEVICE.1 + GAP;
        }
        y = left.max(right);
        let name = match (key.1.first(), &key.0) {
            (Some(switch), _) => format!("switch {switch}"),
            (None, Some(root)) => root.clone(),
            (None, None) => "place unknown".to_owned(),
        };
        let (width, height) = (PANEL - GAP * 2, y - top);
        let _ = writeln!(
            body,
            "<rect x=\"{}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"none\" stroke=\"#aaaaaa\"/>\n<text x=\"{}\" y=\"{}\" fill=\"#666666\">{}</text>",
            x + GAP,
            x + GAP * 2,
            top + 17,
            escape(&name)
        );
        y += GAP;
    }
    let title = match node {
        Some(number) => {
            let node = view.machine.nodes.iter().find(|it| it.number == number);
            let cpus = node.map(|node| ranges(&node.cpus)).unwrap_or_default();
            format!("NUMA node {number}: CPUs {cpus}")
        }
        None => "NUMA node unknown".to_owned(),
    };
    let _ = writeln!(
        body,
        "<rect x=\"{x}\" y=\"{TOP}\" width=\"{PANEL}\" height=\"{}\" rx=\"8\" fill=\"none\" stroke=\"#444444\"/>\n<text x=\"{}\" y=\"{}\" font-weight=\"bold\" fill=\"#222222\">{}</text>",
        y - TOP,
        x + GAP,
        TOP + 18,
        escape(&title)
    );
    body.push_str(&inner);
    y
}

/// The outermost switch, else the host bridge.
fn group(place: &Place) -> (Option<String>, Vec<Address>) {
    (
        place.root.clone(),
        place.switches.iter().take(1).copied().collect(),
    )
}

fn device(body: &mut String, item: &Item, x: u32, y: u32) {
    let (width, height) = DEVICE;
    let colour = match item.is_gpu {
        true => "#dcefd3",
        false => "#d6e6f7",
    };
    let _ = writeln!(
        body,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"{colour}\" stroke=\"#666666\"/>\n<text x=\"{}\" y=\"{}\" fill=\"#222222\">{}</text>\n<text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#666666\">{}</text>",
        x + 8,
        y + 15,
        escape(&item.name),
        x + 8,
        y + 28,
        escape(&item.detail)
    );
}

/// With the distance at the middle.
fn lines(body: &mut String, view: &View, items: &[Item]) {
    let gpus = view.machine.gpus.len();
    for share in &view.plan.ranks {
        let own = share.devices.first().map(|own| super::device(*own));
        let name = own.as_deref().and_then(|name| name.split('/').next());
        let Some(row) = items[..gpus]
            .iter()
            .position(|item| Some(item.name.as_str()) == name)
        else {
            continue;
        };
        for &rail in &share.network.rails {
            let (from, to) = (&items[row], &items[gpus + rail]);
            let label = view.distances[row][gpus + rail].map(|it| it.to_string());
            let (x1, y1) = (from.at.0 + DEVICE.0 / 2, from.at.1);
            let x2 = to.at.0.saturating_sub(DEVICE.0 / 2);
            let y2 = to.at.1;
            let _ = writeln!(
                body,
                "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"#c05020\" stroke-width=\"1.5\"><title>{} {} {}</title></line>",
                escape(&from.name),
                escape(&label.unwrap_or("?".to_owned())),
                escape(&to.name)
            );
        }
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no way to write most control characters.
            character if character.is_control() => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}
