import type { Session } from 'node:inspector/promises'
import type { Readable } from 'node:stream'
import { getHeapSnapshot } from 'node:v8'
import type { AbortSignalLike } from './abort.ts'
import { onAbort } from './abort.ts'
import { sleep } from './clock.ts'

/**
 * Where this process spends its time, as Chrome's developer tools read it (.cpuprofile). Resolves
 * after `ms`, or earlier where `signal` aborts.
 */
export const cpuProfile = (ms: number, signal: AbortSignalLike): Promise<string> =>
  inSession(async (session) => {
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    await sleepUntil(ms, signal)
    const { profile } = await session.post('Profiler.stop')
    return JSON.stringify(profile)
  })

/**
 * Which functions have allocated the memory that is in use at the end, by sampling
 * (.heapprofile). It has no content of objects.
 */
export const heapProfile = (ms: number, signal: AbortSignalLike): Promise<string> =>
  inSession(async (session) => {
    await session.post('HeapProfiler.startSampling')
    await sleepUntil(ms, signal)
    const { profile } = await session.post('HeapProfiler.stopSampling')
    return JSON.stringify(profile)
  })

/**
 * Every object in the memory (.heapsnapshot), with all secrets that are there. The process stands
 * still while it is made, and needs as much memory again.
 */
export const heapSnapshot = (): Readable => getHeapSnapshot()

/** Loads the inspector at its first use; it opens no port. */
async function inSession<T>(act: (session: Session) => Promise<T>): Promise<T> {
  const inspector = await import('node:inspector/promises')
  const session = new inspector.Session()
  session.connect()
  try {
    return await act(session)
  } finally {
    session.disconnect()
  }
}

async function sleepUntil(ms: number, signal: AbortSignalLike): Promise<void> {
  const aborted = new AbortController()
  using _ = onAbort(signal, () => aborted.abort())
  await sleep(ms, aborted.signal)
}
