import { randomUUID } from 'node:crypto'
import { elapsed, sleep } from '../../base/clock.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import type { Quantity } from '../../config/value.ts'
import type { ApiServer } from '../api/api-server.ts'
import { againOnConflict } from '../api/failure.ts'
import {
  keepBaseline,
  readFleet,
  readInstallers,
  replaceInstaller,
  writeState,
  type FleetNode,
  type Installers,
  type UpgradeState,
} from './fleet.ts'
import { baselineOf, gateOf, type Target } from './gate.ts'
import { countOf, listed, type UpgradePlan } from './plan.ts'

export interface WaveOptions {
  /** The DaemonSet of the installers, as `namespace/name`. */
  readonly daemonSet: string
  /** Of the nodes of a wave, how many at a time are changed and have not passed. */
  readonly maxUnavailable: Quantity
  /** How long a node may take to pass the gate. */
  readonly gateMs: number
  /** How long each node of a wave has to pass without a break. */
  readonly soakMs: number
  /** Whether a wave that fails is taken back. */
  readonly rollback: boolean
  readonly say: (line: string) => void
}

/** Another run of the command has begun, or the DaemonSet was changed. */
class TakenOver extends Error {
  readonly code = 'TAKEN_OVER'
}

/** How a wave ended. */
interface WaveEnd {
  /** The first failure; `undefined`: all nodes have passed. */
  readonly failed: string | undefined
}

const pollMs = 1_000

/**
 * Takes a fleet to an image, wave after wave. The progress is kept in the cluster: the next run
 * continues one that was broken off. Resolves to whether all waves passed; at the first that fails
 * it is taken back, and the upgrade stops.
 */
export async function applyUpgrade(
  api: ApiServer,
  plan: UpgradePlan,
  target: Target,
  options: WaveOptions,
): Promise<boolean> {
  const { say, daemonSet } = options
  const { state: before, image } = await readInstallers(api, daemonSet)
  const isResumed = before?.image === target.image && before.phase === 'upgrading'
  const run = {
    run: randomUUID(),
    image: target.image,
    version: target.version,
    from: isResumed ? before.from : image,
  }
  let owner = before?.run
  const enter = async (phase: UpgradeState['phase'], template: string, reason?: string) => {
    const state = { ...run, phase, ...(reason !== undefined && { reason }) }
    await replaceState(api, daemonSet, owner, state, template)
    owner = run.run
  }
  await enter('upgrading', target.image)
  for (const [at, names] of plan.waves.entries()) {
    say(`wave ${at + 1} of ${plan.waves.length}: ${listed(names)}`)
    const wave = new Wave(api, names, { run: run.run, ...options })
    const { failed } = await wave.bring(target)
    if (failed === undefined) {
      await wave.forget()
      say('  passed')
      continue
    }
    say(`  failed: ${failed}`)
    if (!options.rollback) {
      await enter('stopped', target.image, failed)
      say('stopped: the nodes of this wave are as they are')
      return false
    }
    await enter('taking back', run.from, failed)
    await takeBack(api, names, run, options)
    await enter('taken back', run.from, failed)
    return false
  }
  await enter('done', target.image)
  return true
}

/** Ends the rollback of a wave during which an earlier run was killed. */
export async function finishTakingBack(
  api: ApiServer,
  state: UpgradeState,
  options: WaveOptions,
): Promise<void> {
  const installers = await readInstallers(api, options.daemonSet)
  const fleet = await readFleet(api, installers)
  const names = [...fleet.values()]
    .filter(({ baseline }) => baseline?.to === state.image)
    .map(({ name }) => name)
  const mine = { ...state, run: randomUUID() }
  const { daemonSet } = options
  await replaceState(api, daemonSet, state.run, mine, state.from)
  await takeBack(api, names, mine, options)
  await replaceState(api, daemonSet, mine.run, { ...mine, phase: 'taken back' }, state.from)
}

/** The installers while this run of the command is the last. Throws `TakenOver` afterwards. */
async function installersOf(api: ApiServer, daemonSet: string, run: string | undefined) {
  const installers = await readInstallers(api, daemonSet)
  if (installers.state?.run !== run)
    throw new TakenOver('another upgrade has begun: this one stops, and changes nothing more')
  return installers
}

/**
 * Replaces the state that `run` has written. The controller of the DaemonSet writes its status
 * meanwhile, which is a conflict as well. Throws `TakenOver` where another run has written.
 */
const replaceState = (
  api: ApiServer,
  daemonSet: string,
  run: string | undefined,
  state: UpgradeState,
  image: string,
): Promise<JsonObject> =>
  againOnConflict(async () =>
    writeState(api, await installersOf(api, daemonSet, run), state, image),
  )

/** Brings the nodes of a wave that were changed back to the image before. */
async function takeBack(
  api: ApiServer,
  names: readonly string[],
  { run, from }: Pick<UpgradeState, 'run' | 'from'>,
  options: WaveOptions,
): Promise<void> {
  const wave = new Wave(api, names, { ...options, run, soakMs: 0 })
  const { failed } = await wave.restore(from)
  await wave.forget()
  options.say(
    failed === undefined
      ? '  taken back: its nodes run what they ran before'
      : `  taken back, but not all of its nodes have settled: ${failed}`,
  )
}

interface Progress {
  /** By the clock of `elapsed`. */
  readonly changedAt: number
  passedAt?: number | undefined
  /** When its hub started: another start is a break. */
  started?: string | undefined
}

/** The nodes of one wave, on their way to an image. */
class Wave {
  readonly #api: ApiServer
  readonly #names: readonly string[]
  readonly #options: WaveOptions & { readonly run: string }
  #progress = new Map<string, Progress>()

  constructor(
    api: ApiServer,
    names: readonly string[],
    options: WaveOptions & { readonly run: string },
  ) {
    this.#api = api
    this.#names = names
    this.#options = options
  }

  /** Changes each node, and checks it until it has passed for the whole of the soak time. */
  bring(target: Target): Promise<WaveEnd> {
    return this.#until(
      this.#names,
      async (node, installers) => {
        const baseline = node.baseline ?? baselineOf(node, target.image)
        if (node.baseline?.to !== target.image)
          await keepBaseline(this.#api, node.name, { ...baseline, to: target.image })
        if (node.pod && node.pod.image !== target.image)
          await replaceInstaller(this.#api, installers, node.pod)
      },
      (node) => gateOf(node, node.baseline ?? baselineOf(node, target.image), target),
    )
  }

  /** Gives the nodes that were changed the installer of the image before. */
  async restore(image: string): Promise<WaveEnd> {
    const fleet = await readFleet(this.#api, await this.#installers())
    const changed = this.#names.filter((name) => fleet.get(name)?.baseline !== undefined)
    // Refusals of the hub, and its verdict on a reboot, do not keep a node from going back.
    const anything = { to: image, started: '', offlineReady: '', refused: [] }
    return this.#until(
      changed,
      async (node, installers) => {
        if (node.pod && node.pod.image !== image)
          await replaceInstaller(this.#api, installers, node.pod)
      },
      (node) => {
        const version = node.baseline?.version ?? ''
        const refused = node.report?.refused ?? []
        return gateOf(node, { ...anything, version, refused }, { image, version })
      },
    )
  }

  /** Removes the baselines from the nodes. */
  async forget(): Promise<void> {
    const fleet = await readFleet(this.#api, await this.#installers())
    for (const name of this.#names)
      if (fleet.get(name)?.baseline) await keepBaseline(this.#api, name, undefined)
  }

  #installers() {
    return installersOf(this.#api, this.#options.daemonSet, this.#options.run)
  }

  async #until(
    names: readonly string[],
    change: (node: FleetNode, installers: Installers) => Promise<void>,
    judge: (node: FleetNode) => ReturnType<typeof gateOf>,
  ): Promise<WaveEnd> {
    const { gateMs, soakMs, maxUnavailable } = this.#options
    const most = countOf(maxUnavailable, names.length)
    this.#progress = new Map()
    for (;;) {
      const installers = await this.#installers()
      const fleet = await readFleet(this.#api, installers)
      const present = names.flatMap((name) => fleet.get(name) ?? [])
      let unavailable = 0
      let settled = 0
      for (const node of present) {
        const progress = this.#progress.get(node.name)
        if (progress === undefined) continue
        const verdict = judge(node)
        if (verdict.state === 'failed') return { failed: `${node.name}: ${verdict.why}` }
        if (verdict.state === 'passed' && progress.started === node.report?.started) {
          progress.passedAt ??= elapsed()
          if (elapsed() - progress.passedAt >= soakMs) settled += 1
          continue
        }
        progress.passedAt = undefined
        progress.started = node.report?.started
        unavailable += 1
        if (elapsed() - progress.changedAt <= gateMs + soakMs) continue
        const why = verdict.state === 'waiting' ? verdict.why : 'its hub starts again and again'
        return { failed: `${node.name}: ${why}` }
      }
      if (settled === present.length) return { failed: undefined }
      for (const node of present) {
        if (unavailable >= most || this.#progress.has(node.name)) continue
        await change(node, installers)
        this.#progress.set(node.name, { changedAt: elapsed() })
        unavailable += 1
      }
      await sleep(pollMs + fleet.size)
    }
  }
}
