/**
 * Calls `measure` for each of `peers` in each of `rounds`, one at a time. Each round begins with
 * another peer, so that none always comes after the same one, and what changes on the machine in
 * the course of a run meets all of them. Answers the samples of each peer in the order of the
 * rounds.
 */
export async function interleave<Peer, Sample>(
  peers: readonly Peer[],
  rounds: number,
  measure: (peer: Peer, round: number) => Promise<Sample>,
): Promise<Map<Peer, Sample[]>> {
  const samples = new Map<Peer, Sample[]>(peers.map((peer) => [peer, []]))
  for (let round = 0; round < rounds; round += 1)
    for (const peer of rotated(peers, round)) samples.get(peer)?.push(await measure(peer, round))
  return samples
}

/** The same, begun `by` further on. */
function rotated<Each>(all: readonly Each[], by: number): readonly Each[] {
  const at = all.length === 0 ? 0 : by % all.length
  return [...all.slice(at), ...all.slice(0, at)]
}
