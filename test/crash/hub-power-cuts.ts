import { mkdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { roundOf } from '../fuzz/random.ts'
import { startCloud } from '../kit/cloud.ts'
import { ChildHub } from '../kit/hub-child.ts'
import { hubFlags } from '../kit/hub-config.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { FaultyDisk, readSteps } from './disk.ts'
import { HubRun, type Reader } from './hub-run.ts'
import { FragileDisk } from './power-cut.ts'
import { CheckingClient } from './checking-client.ts'

export interface HubPowerCuts {
  /** An empty folder of the caller's. */
  readonly folder: string
  readonly library: string
  readonly seed: number
  readonly lives: number
  readonly cuts: number
  readonly onCut?: (step: number, of: number) => void
}

/**
 * A state that a client was shown when the log had this length, and that a power cut must not lose.
 */
interface ShownState {
  readonly reader: Reader
  readonly version: number
  readonly end: number
}

/**
 * Runs a hub several times, each run ended by a kill, and cuts the power at moments of all that was
 * written. On each state that a cut could leave, a hub starts without a cloud, and every list it
 * answers must be the cloud's state at one version, not older than any list or deletion that a
 * client was shown.
 */
export async function cutHubPower(
  t: Teardown,
  { folder: given, library, ...of }: HubPowerCuts,
): Promise<void> {
  const folder = realpathSync(given)
  const [live, found, log] = [join(folder, 'live'), join(folder, 'found'), join(folder, 'log')]
  mkdirSync(live)
  const cloud = await startCloud(t)
  using watched = new FaultyDisk(library, live, join(folder, 'control'), log)
  const upstreams = [cloud]
  const hub = new ChildHub(live, hubFlags(live, { upstreams }), {
    ...watched.env,
    NODE_OPTIONS: '',
  })
  t.teardown(() => hub.crash())
  const run = new HubRun(cloud, hub, watched)
  const told: ShownState[] = []
  for (const reader of run.readers) {
    reader.checker.onShown = (what, version) => {
      if (what === 'LIST' || what === 'DELETED')
        told.push({ reader, version, end: statSync(log).size })
    }
  }
  await hub.start()
  await hub.online()
  for (let round = 0; round < of.lives; round += 1) {
    await run.die(round % 2 === 0 ? 'events' : 'lists', 0, roundOf(of.seed, round))
    await run.comeBack(roundOf(of.seed, round))
  }
  await hub.crash()
  await cloud.unplug()

  const disk = new FragileDisk(live)
  const steps = readSteps(log)
  const random = roundOf(of.seed, of.lives)
  const moments = new Set(Array.from({ length: of.cuts }, () => random.below(steps.length)))
  for (const [at, step] of steps.entries()) {
    disk.feed(step, random)
    if (!moments.has(at)) continue
    rmSync(found, { recursive: true, force: true })
    disk.cutPower(found, roundOf(of.seed, at))
    const before = told.filter(({ end }) => end <= step.end)
    await inspect(found, hubFlags(found, { upstreams }), run.readers, before).catch((cause) => {
      throw new Error(`seed ${of.seed}, after step ${at} of ${steps.length}`, { cause })
    })
    of.onCut?.(at, steps.length)
  }
}

async function inspect(
  folder: string,
  flags: readonly string[],
  readers: readonly Reader[],
  told: readonly ShownState[],
): Promise<void> {
  const hub = new ChildHub(folder, flags, { NODE_OPTIONS: '' })
  try {
    await hub.start()
    for (const { encoding, history, checker } of readers) {
      const own = told.filter(({ reader }) => reader.checker === checker)
      const alone = new CheckingClient(checker.path, history)
      alone.version = Math.max(0, ...own.map(({ version }) => version))
      const client = hub.as('kubelet', { encoding })
      if (alone.version > 0 || (await client.get(alone.path)).status === 200)
        await alone.list(client)
    }
    if (/the store failed|a record is damaged/.test(hub.log)) throw new Error(hub.log)
  } finally {
    await hub.crash()
  }
}
