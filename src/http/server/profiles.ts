import { cpuProfile, heapProfile, heapSnapshot } from '../../base/v8-profile.ts'
import { onAbort, type AbortSignalLike } from '../../base/abort.ts'
import { isLoopback } from '../../api/request/host-check.ts'
import { sourceOf } from '../exchange/chunks.ts'
import type { Incoming, WireReply } from '../exchange/exchange.ts'
import { opsHeaders, opsReply } from './ops-reply.ts'

/** Profiles of this process at `POST /debug/<kind>?seconds=N`, one at a time. */
export interface Profiling {
  /** Whether a caller, which is on loopback, may have them: a snapshot has every secret. */
  readonly authorize: (caller: Incoming) => Promise<boolean>
}

/** The kinds of profiles. */
export const profileKinds = ['cpu', 'heap', 'heap-snapshot'] as const

export const mostSeconds = 60
const usualSeconds = 10

/** Answers a request for a profile. */
export function profiler(profiling: Profiling | undefined) {
  let isRunning = false
  return async (
    path: string,
    query: URLSearchParams,
    incoming: Incoming,
  ): Promise<WireReply | undefined> => {
    const kind = profileKinds.find((each) => path === `/debug/${each}`)
    if (!profiling || kind === undefined) return undefined
    const { method, headers, peer, signal } = incoming
    if (method !== 'POST') return opsReply(405, '', { Allow: 'POST' })
    if (
      !isLoopback(peer.localAddress) ||
      headers.get('sec-fetch-site') !== undefined ||
      !(await profiling.authorize(incoming))
    )
      return opsReply(403, forRoot)
    const seconds = Number(query.get('seconds') ?? usualSeconds)
    if (!(seconds >= 1 && seconds <= mostSeconds)) return opsReply(400, wrongSeconds)
    if (isRunning) return opsReply(409, 'a profile is being made already\n')
    isRunning = true
    const release = (): void => void (isRunning = false)
    if (kind === 'heap-snapshot') {
      // At its end, however it ends.
      onAbort(signal, release)
      return snapshotReply()
    }
    try {
      return await profileReply(kind, seconds * 1000, signal)
    } finally {
      release()
    }
  }
}

const forRoot = 'profiles are for root of this node alone, on loopback\n'
const wrongSeconds = `seconds is a number from 1 to ${mostSeconds}\n`

async function profileReply(
  kind: 'cpu' | 'heap',
  ms: number,
  signal: AbortSignalLike,
): Promise<WireReply> {
  const profile = kind === 'cpu' ? cpuProfile : heapProfile
  return opsReply(200, await profile(ms, signal), { 'Content-Type': 'application/json' })
}

/** Made and sent piece by piece, as the client takes it. */
function snapshotReply(): WireReply {
  async function* pieces(): AsyncGenerator<readonly Uint8Array[]> {
    for await (const piece of heapSnapshot()) yield [Buffer.from(piece as Uint8Array)]
  }
  return {
    kind: 'bytes',
    status: 200,
    headers: opsHeaders({ 'Content-Type': 'application/json' }),
    from: 'hub',
    source: sourceOf(pieces()),
  }
}
