import { join } from 'node:path'
import { roundOf } from '../fuzz/random.ts'
import { startCloud } from '../kit/cloud.ts'
import { ChildHub } from '../kit/hub-child.ts'
import { hubFlags } from '../kit/hub-config.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { FaultyDisk } from './disk.ts'
import { HubRun } from './hub-run.ts'

export interface Kills {
  /** An empty folder of the caller's. */
  readonly folder: string
  readonly library: string
  readonly seed: number
  readonly deaths: number
  /** Told after each death at which of how many steps it was, if it was at one. */
  readonly onDeath?: (round: number, step: number, of: number) => void
}

/**
 * Kills a hub again and again, each time at the next step of its work: while it records events and
 * passes them on, and while it replaces lists. Then starts it without a cloud, when everything that
 * its clients were shown must be there; and again with it, when they go on from where they were.
 * Rejects at the first fault.
 */
export async function kill(t: Teardown, { folder, library, ...of }: Kills): Promise<void> {
  const cloud = await startCloud(t)
  const disk = new FaultyDisk(library, folder, join(folder, 'control'))
  t.teardown(() => disk[Symbol.dispose]())
  const flags = hubFlags(folder, { upstreams: [cloud] })
  const hub = new ChildHub(folder, flags, { ...disk.env, NODE_OPTIONS: '' })
  t.teardown(() => hub.crash())
  const run = new HubRun(cloud, hub, disk)
  await hub.start()
  await hub.online()
  // The number of steps of a round is known only from rounds that were completed.
  const steps = { events: 1, lists: 1 }
  for (let round = 0; round < of.deaths; round += 1) {
    const random = roundOf(of.seed, round)
    const kind = round % 3 === 2 ? 'lists' : 'events'
    const whole = round < 3
    const step = whole ? 0 : 1 + ((Math.floor(round / 3) * stride) % steps[kind])
    try {
      const took = await run.die(kind, step, random)
      if (took !== undefined) steps[kind] = Math.max(steps[kind], took)
      await run.comeBack(random)
    } catch (cause) {
      const where = `seed ${of.seed}, death ${round}, at step ${step} of ${steps[kind]} of ${kind}`
      throw new Error(`${where}\n${hub.log}`, { cause })
    }
    of.onDeath?.(round, step, steps[kind])
  }
}

/**
 * Goes through all steps in an order in which few of them already touch all parts; a prime, so that
 * none is left out.
 */
const stride = 37
