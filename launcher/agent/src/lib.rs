//! What runs on each host: agent, keeper, output
