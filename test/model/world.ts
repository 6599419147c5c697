import { constants } from 'node:os'
import { at, objectOf, type Client } from '../kit/client.ts'
import { CloudServer } from '../kit/cloud.ts'
import { freePort } from '../kit/free-port.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { textAt } from '../../src/api/kube/json-at.ts'
import { startSandbox, type LaggingEndpoint } from '../../src/sandbox/sandbox.ts'
import { Observations, checkState } from './observations.ts'
import {
  bodyOf,
  isWhole,
  modelObject,
  namespaces,
  pathOf,
  pathOfObject,
  resources,
  shown,
  type Collection,
} from './collection.ts'
import { Finding } from './finding.ts'
import { ModelReflector } from './reflector.ts'
import { History } from './history.ts'
import { Link, type LinkState } from './link.ts'
import type { Operation, Setup, ViewerSetup } from './operations.ts'
import { runHub, type RunningHub } from './running-hub.ts'

type Op<Do extends Operation['do']> = Extract<Operation, { readonly do: Do }>

interface Viewer {
  readonly setup: ViewerSetup
  readonly audience: Observations
  readonly followers: ReadonlyMap<Collection, ModelReflector>
  readonly peeks: Map<Collection, ModelReflector>
}

/** The state of the world at the time of a request. */
interface RequestContext {
  readonly state: LinkState
  readonly epoch: number
  readonly life: number
  readonly newest: number
}

/**
 * Soon enough for a verdict not to be waited for, and seldom enough for a dozen hubs in one
 * process.
 */
const heartbeat = { intervalMs: 100, timeoutMs: 2_000, failedRetry: 1, healthyThreshold: 1 }

/** A cloud, a hub before it, programs that ask the hub, and a model of what they may be shown. */
export class World implements AsyncDisposable {
  readonly #setup: Setup
  readonly #cloud: CloudServer
  readonly #second: LaggingEndpoint | undefined
  readonly #hub: RunningHub
  readonly #history: History
  readonly #link: Link
  readonly #viewers: readonly Viewer[]
  readonly #token: string
  readonly #loose = new Set<Promise<void>>()
  #looseFailure: unknown
  /** Another one for each process of the hub. */
  #life = 0
  /** The newest version when the link was cut last. */
  #cutAt = Infinity
  #diskFails = false
  /** The oldest version for an exact list. */
  #marks = 0
  /**
   * Which programs were shown which resources, whoever they spoke for: what their filters depend on
   * has been learned.
   */
  readonly #filtered = new Set<string>()
  /** The operations and events, for debugging. */
  readonly trace: string[] = []

  private constructor(
    setup: Setup,
    cloud: CloudServer,
    second: LaggingEndpoint | undefined,
    hub: RunningHub,
  ) {
    this.#setup = setup
    this.#cloud = cloud
    this.#second = second
    this.#hub = hub
    this.#token = cloud.sandbox.token('system:serviceaccount:red:reader')
    this.#history = new History(() => Number(cloud.sandbox.version), setup.lag)
    this.#link = new Link(cloud)
    const audiences = new Map<string, Observations>()
    const say = (line: string): void => void this.trace.push(line)
    this.#viewers = setup.viewers.map((each) => {
      const name = `${each.identity} ${each.encoding}`
      const audience = audiences.get(name) ?? new Observations(this.#history)
      audiences.set(name, audience)
      const followers = setup.collections.map(
        (collection) =>
          [collection, new ModelReflector(collection, this.#history, audience, say)] as const,
      )
      return { setup: each, audience, followers: new Map(followers), peeks: new Map() }
    })
  }

  static async start(setup: Setup): Promise<World> {
    const sandbox = await startSandbox({
      tls: false,
      bookmarkMs: setup.bookmarkMs,
      freshnessMs: 20,
      namespaces: [...namespaces],
      // It comes back after it was down for a while.
      ...(setup.lag > 0 && { port: await freePort() }),
    })
    const second = setup.lag > 0 ? await sandbox.lag(setup.lag) : undefined
    const cloud = new CloudServer(sandbox, undefined)
    const upstreams = second ? [cloud, second] : [cloud]
    const options = { upstreams, flags: ['--lb-mode=priority'], config: { heartbeat } }
    const hub = await runHub(options, setup)
    const world = new World(setup, cloud, second, hub)
    await world.#steady()
    return world
  }

  async do(operation: Operation): Promise<void> {
    this.trace.push(`${this.#history.newest} ${this.#link.state} ${JSON.stringify(operation)}`)
    switch (operation.do) {
      case 'write':
        this.#write(operation)
        break
      case 'delete':
        this.#delete(operation)
        break
      case 'list':
        await this.#unless(operation.loose, this.#list(operation))
        break
      case 'get':
        await this.#unless(operation.loose, this.#get(operation))
        break
      case 'follow':
        await this.#follow(operation)
        break
      case 'peek':
        await this.#peek(operation)
        break
      case 'leave':
        this.#followerOf(operation).leave()
        break
      case 'settle':
        await this.#settle()
        break
      case 'unplug':
        this.#cutLink()
        if (operation.waits) await this.#steady()
        break
      case 'plug':
        if (!this.#link.isDown) break
        this.#link.mend()
        if (operation.waits) await this.#steady()
        break
      case 'freeze':
        this.#link.freeze()
        break
      case 'thaw':
        this.#link.thaw()
        break
      case 'reset':
        this.#link.shake()
        break
      case 'steady':
        await this.#steady()
        break
      case 'cut':
        await this.#cut(operation)
        break
      case 'compact':
        // What the lagging one has not told yet would be lost to it: the two have one memory.
        if (this.#lags) break
        this.#cloud.sandbox.compact()
        this.#history.compacted = this.#history.newest
        break
      case 'end-watches':
        this.#cloud.sandbox.endWatches()
        break
      case 'restart':
        // Which writes it missed could not be recorded.
        if (this.#diskFails) break
        this.#life++
        this.#link.is('unclear')
        await this.#hub.restart()
        await this.#steady()
        break
      case 'fall-behind':
        if (this.#second) await this.#link.fallBehind()
        break
      case 'catch-up':
        await this.#link.catchUp()
        break
      case 'fail-disk':
        this.#failDisk(operation.what)
        break
      case 'heal-disk':
        await this.#healDisk()
        break
    }
    this.#throwIfAny()
  }

  #cutLink(): void {
    if (!this.#link.isDown) this.#cutAt = this.#history.newest
    this.#link.cut()
  }

  #failDisk(what: Op<'fail-disk'>['what']): void {
    const { disk } = this.#hub
    if (!disk) return
    this.#diskFails = true
    const { ENOSPC, EIO } = constants.errno
    if (what === 'writes') disk.failWrites(ENOSPC)
    else disk.failSyncs(EIO)
    for (const { audience } of this.#viewers) audience.storesNoMore()
  }

  async #healDisk(): Promise<void> {
    const { disk } = this.#hub
    if (!disk || !this.#diskFails) return
    disk.failWrites(0)
    disk.failSyncs(0)
    await this.#hub.storing()
    this.#diskFails = false
    for (const { audience } of this.#viewers) audience.storesAgain()
  }

  async #unless(loose: boolean, doing: Promise<void>): Promise<void> {
    if (!loose) return doing
    const one = doing
      .catch((failure: unknown) => void (this.#looseFailure ??= failure))
      .finally(() => this.#loose.delete(one))
    this.#loose.add(one)
  }

  #throwIfAny(): void {
    if (this.#looseFailure !== undefined) throw this.#looseFailure
    for (const follower of this.#followers()) follower.throwIfAny()
  }

  *#followers(): Generator<ModelReflector> {
    for (const { followers, peeks } of this.#viewers) {
      yield* followers.values()
      yield* peeks.values()
    }
  }

  #viewer(index: number): Viewer {
    const viewer = this.#viewers[index % this.#viewers.length]
    if (!viewer) throw new Error('a world has viewers')
    return viewer
  }

  #collection(index: number): Collection {
    const collection = this.#setup.collections[index % this.#setup.collections.length]
    if (!collection) throw new Error('a world has collections')
    return collection
  }

  #followerOf({ viewer, collection }: { viewer: number; collection: number }): ModelReflector {
    const found = this.#viewer(viewer).followers.get(this.#collection(collection))
    if (!found) throw new Error('every viewer may follow every collection')
    return found
  }

  #clientOf({ setup }: Viewer): Client {
    return this.#hub.as(setup.component, {
      encoding: setup.encoding,
      ...(setup.identity === 'account' && { token: this.#token }),
    })
  }

  #write({ resource, namespace, name, app }: Op<'write'>): void {
    const gvr = resources[resource]
    const body = bodyOf(resource, { namespace, name, app, mark: `m${this.#marks++}` })
    const { sandbox } = this.#cloud
    const there = this.#history.now(resource, { namespace, name }) !== undefined
    const written = there
      ? sandbox.update(gvr, { ...sandbox.get(gvr, name, namespace), ...body })
      : sandbox.create(gvr, body)
    this.#history.put(resource, modelObject(written))
  }

  #delete({ resource, namespace, name }: Op<'delete'>): void {
    if (!this.#history.now(resource, { namespace, name })) return
    const { sandbox } = this.#cloud
    const gone = sandbox.delete(resources[resource], name, namespace, { gracePeriodSeconds: 0 })
    this.#history.remove(resource, modelObject(gone))
  }

  #ask(): RequestContext {
    const { state, epoch } = this.#link
    return { state, epoch, life: this.#life, newest: this.#history.newest }
  }

  /** How things stood all the while: where that has changed, nothing can be said. */
  #stateSince({ state, epoch }: RequestContext): LinkState {
    return epoch === this.#link.epoch ? state : 'unclear'
  }

  get #lags(): boolean {
    return this.#second !== undefined
  }

  async #list(operation: Op<'list'>): Promise<void> {
    const viewer = this.#viewer(operation.viewer)
    const collection = this.#collection(operation.collection)
    const follower = this.#followerOf(operation)
    const { audience } = viewer
    const asked = this.#ask()
    const [floor, stored] = [audience.floor(collection), audience.storedFloor(collection)]
    const mustHave = this.#mustHave(viewer, collection)
    const inputsKnown = this.#knowsInputs(viewer, collection)
    const own = follower.version ?? floor
    const wanted = wantedVersion(operation, own, this.#history)
    const isNumbered = wanted !== '' && wanted !== '0'
    const match =
      isNumbered || (wanted === '0' && operation.match !== 'Exact') ? operation.match : ''
    const exact = isNumbered && (match === 'Exact' || (match === '' && operation.limit > 0))
    const query: Record<string, string> = {
      ...(wanted !== '' && { resourceVersion: wanted }),
      ...(match !== '' && { resourceVersionMatch: match }),
      ...(operation.limit > 0 && { limit: String(operation.limit) }),
    }
    const path = pathOf(collection, query)
    const shownItems: string[] = []
    let version: number | undefined
    let isPaged = false
    for (let next = path; ;) {
      const answer = await this.#send(viewer, next)
      const state = this.#stateSince(asked)
      if (answer?.status !== 200) {
        const further = version !== undefined
        const mayRefuse = further
          ? answer?.status === 410 &&
            (state !== 'online' || (version ?? 0) < this.#history.compacted)
          : this.#mayRefuseList(answer?.status, state, viewer, {
              number: isNumbered ? Number(wanted) : undefined,
              exact,
              floor: stored,
              mustHave,
              newest: asked.newest,
              inputsKnown,
            })
        if (!mayRefuse && !(further && state === 'unclear')) {
          throw new Finding(`${next} was ${answered(answer)} while ${state}`)
        }
        return
      }
      const list = answer.object
      const given = Number(at(list, 'metadata', 'resourceVersion'))
      this.#say(viewer, `${next} is at ${given}`)
      if (!this.#history.isIssued(given)) {
        throw new Finding(`${next} is at ${given}, which was never issued`)
      }
      if (version !== undefined && given !== version) {
        throw new Finding(`a further page is at ${given}, the first at ${version}`)
      }
      version = given
      shownItems.push(
        ...((list['items'] ?? []) as readonly JsonObject[]).map((item) => shown(modelObject(item))),
      )
      const token = at(list, 'metadata', 'continue')
      if (typeof token !== 'string' || token === '') break
      const { limit = '1' } = query
      next = pathOf(collection, { limit, continue: token })
      isPaged = true
    }
    const truth = this.#history.state(collection, version)
    if (truth.join() !== shownItems.toSorted().join()) {
      throw new Finding(
        `${path} at ${version} shows ${shownItems.join(', ') || 'nothing'} where there was ${truth.join(', ') || 'nothing'}`,
      )
    }
    const isOnline = this.#stateSince(asked) === 'online'
    // Of any age it may come from the API server that lags, as it would without a hub.
    const isOfAnyAge =
      wanted === '0' && this.#setup.lag > 0 && this.#stateSince(asked) !== 'offline'
    const least = isOfAnyAge
      ? 0
      : leastVersion(wanted, isOnline ? floor : stored, isOnline, asked.newest)
    if (version < least) throw new Finding(`${path} is at ${version}, before ${least}`)
    if (exact && version !== Number(wanted)) {
      throw new Finding(`${path} is at ${version}, not exactly that`)
    }
    this.#stored(viewer, collection)
    // What was read in pages was not kept.
    if (!isPaged) audience.showList(collection, version)
    if (!follower.isOpen && version >= (follower.version ?? 0)) follower.take(version)
  }

  /**
   * Whether it is to be had offline, too: it was shown whole, and what this program's filters
   * depend on was known before.
   */
  #mustHave(viewer: Viewer, collection: Collection): boolean {
    return viewer.audience.wasShownWhole(collection) && this.#knowsInputs(viewer, collection)
  }

  /**
   * Whether what this program's filters depend on is known. Else a request waits two seconds for
   * it, which may be too short on a busy machine.
   */
  #knowsInputs(viewer: Viewer, collection: Pick<Collection, 'resource'>): boolean {
    return this.#filtered.has(programOf(viewer, collection))
  }

  #mayRefuseList(
    status: number | undefined,
    state: LinkState,
    { audience, setup }: Viewer,
    asked: {
      number: number | undefined
      exact: boolean
      floor: number
      mustHave: boolean
      newest: number
      inputsKnown: boolean
    },
  ): boolean {
    const { number, exact, floor, mustHave, newest, inputsKnown } = asked
    // It may have come since, too late for who waited.
    const isFuture = number !== undefined && number > newest
    if (status === 401) return setup.identity === 'account' && !audience.accepted
    if (state === 'unclear') return status === undefined || status === 410 || status >= 500
    if (state === 'online') {
      if (status === 503) return !inputsKnown
      if (status === 504) return isFuture || (this.#lags && number !== undefined)
      return status === 410 && exact && (number ?? 0) < this.#history.compacted
    }
    if (status === 410) return exact
    if (status === 504) return number !== undefined && (exact || number > floor)
    return status === 503 && !mustHave
  }

  async #get({ viewer: index, resource, namespace, name, version }: Op<'get'>): Promise<void> {
    const viewer = this.#viewer(index)
    const { audience } = viewer
    const of = { namespace, name }
    const asked = this.#ask()
    const [known, stored] = [audience.sinceOf(resource, of), audience.storedSinceOf(resource, of)]
    const inputsKnown = this.#knowsInputs(viewer, { resource })
    const wasThere = audience.isKnownThere(resource, of) && inputsKnown
    const path = `${pathOfObject(resource, of)}${version === 'any' ? '?resourceVersion=0' : ''}`
    const answer = await this.#send(viewer, path)
    const state = this.#stateSince(asked)
    const isOnline = state === 'online'
    const isLate = version === 'any' && this.#setup.lag > 0 && state !== 'offline'
    const ofOnline = version === 'none' ? asked.newest : known
    const since = isLate ? 0 : isOnline ? ofOnline : stored
    this.#say(viewer, `${path}: ${answer?.status}`)
    if (answer?.status === 200) {
      const object = modelObject(answer.object)
      checkState(this.#history, resource, of, shown(object), since, shown)
      this.#stored(viewer, { resource })
      audience.showObject(resource, object)
      return
    }
    if (answer?.status === 404) {
      checkState(this.#history, resource, of, undefined, since, shown)
      audience.accepted ||= state === 'online' && !this.#diskFails
      audience.showAbsence(resource, of, this.#history.absentFrom(resource, of, since) ?? since)
      return
    }
    if (answer?.status === 401 && viewer.setup.identity === 'account' && !audience.accepted) return
    if (state === 'unclear' && (answer === undefined || answer.status >= 500)) return
    if (state === 'online' && answer?.status === 503 && !inputsKnown) return
    // A watch may have shown meanwhile that it has left a selection, or the hub knows it already.
    const shownAt = audience.sinceOf(resource, of)
    // Where a watch that is not recorded shows it deleted, the hub does not know it any more.
    const watched = this.#setup.collections.filter(
      (each) =>
        (!isWhole(each) && audience.floor(each) > 0) ||
        this.#viewers.some((other) => other.audience === audience && other.peeks.has(each)),
    )
    // Beside a selection the hub does not say that what it knows to be deleted is absent: it may
    // have been made anew since, and have left the selection.
    const isBeside = watched.some((each) => !isWhole(each) && each.resource === resource)
    const leftBy = isBeside ? this.#setup.collections : watched
    const mustHave =
      wasThere &&
      audience.isKnownThere(resource, of) &&
      !this.#history.hasLeft(leftBy, resource, of, shownAt, this.#cutAt)
    if (state === 'offline' && answer?.status === 503 && !mustHave) return
    throw new Finding(`${path} was ${answered(answer)} while ${state}`)
  }

  /** An answer has shown that its caller is accepted, and what its filters depend on is known. */
  #stored(viewer: Viewer, collection: Collection): void {
    if (this.#diskFails) return
    viewer.audience.accepted = true
    this.#filtered.add(programOf(viewer, collection))
  }

  async #send(
    viewer: Viewer,
    path: string,
  ): Promise<{ status: number; object: JsonObject } | undefined> {
    try {
      const answer = await this.#clientOf(viewer).get(path)
      return { status: answer.status, object: objectOf(answer) }
    } catch {
      return undefined
    }
  }

  async #follow(operation: Pick<Op<'follow'>, 'viewer' | 'collection' | 'from'>): Promise<void> {
    const viewer = this.#viewer(operation.viewer)
    const { audience } = viewer
    const follower = this.#followerOf(operation)
    const { collection, version } = follower
    const asked = this.#ask()
    const isOnline = asked.state === 'online'
    const floor = isOnline ? audience.floor(collection) : audience.storedFloor(collection)
    const mustHave = this.#mustHave(viewer, collection)
    const inputsKnown = this.#knowsInputs(viewer, collection)
    const resumes = operation.from === 'own' && version !== undefined
    const bookmarks = { allowWatchBookmarks: 'true' }
    const query: Record<string, string> = resumes
      ? { resourceVersion: String(version), ...bookmarks }
      : {
          sendInitialEvents: 'true',
          resourceVersionMatch: 'NotOlderThan',
          ...(version !== undefined && { resourceVersion: String(version) }),
          ...bookmarks,
        }
    const least = leastVersion(
      version === undefined ? '' : String(version),
      floor,
      isOnline,
      asked.newest,
    )
    const start = resumes ? { after: version } : { from: Math.max(least, this.#history.first) }
    const status = await follower.watch(
      this.#clientOf(viewer),
      start,
      query,
      this.#recordsWatchesOf(viewer),
    )
    this.#say(viewer, `${pathOf(collection, query)}: ${status}`)
    const state = this.#stateSince(asked)
    if (status === 200) {
      this.#stored(viewer, collection)
      return
    }
    if (status === 410 || status === 504) follower.version = undefined
    if (status === 401 && viewer.setup.identity === 'account' && !audience.accepted) return
    if (state === 'unclear') return
    if (state === 'online' && status === 504 && this.#lags) return
    if (state === 'online' && status === 503 && !inputsKnown) return
    if (state === 'offline' && status === 503 && !mustHave) return
    // A failing disk has not taken what was shown.
    if (state === 'offline' && status === 504 && (version ?? 0) > audience.storedFloor(collection))
      return
    throw new Finding(
      `${pathOf(collection, query)} was answered ${status ?? 'by a break'} while ${state}`,
    )
  }

  /** The API server itself answers the watch of a token that no answer has proven before. */
  #recordsWatchesOf({ setup, audience }: Viewer): boolean {
    return setup.identity === 'node' || audience.accepted
  }

  /** A watch that begins with what there is at any version is nobody's copy: it is only judged. */
  async #peek(operation: Op<'peek'>): Promise<void> {
    const viewer = this.#viewer(operation.viewer)
    const collection = this.#collection(operation.collection)
    viewer.peeks.get(collection)?.leave()
    const peek = new ModelReflector(collection, this.#history, viewer.audience, (line) =>
      this.trace.push(line),
    )
    viewer.peeks.set(collection, peek)
    await peek.watch(
      this.#clientOf(viewer),
      { from: this.#history.first },
      { resourceVersion: '0' },
      this.#recordsWatchesOf(viewer),
    )
  }

  #say({ setup }: Viewer, line: string): void {
    this.trace.push(`  ${setup.component} ${setup.identity} ${setup.encoding} ${line}`)
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#loose)
    if (this.#link.isFrozen || this.#link.state === 'unclear') return
    const seen = this.#history.newest - this.#setup.lag
    for (const { followers } of this.#viewers) {
      for (const follower of followers.values()) {
        await follower.begun()
        if (this.#link.state === 'online') await follower.caughtUp(seen)
      }
    }
  }

  /** Resolves when the hub knows how things stand, or cannot. */
  async #steady(): Promise<void> {
    if (this.#link.isFrozen) return
    if (this.#link.isDown) {
      await this.#hub.offline()
      this.#link.is('offline')
      return
    }
    const isProbe = ({ path }: { path: string }): boolean => path === '/readyz'
    // Whatever probe was under way when things changed is over when the second after it has begun.
    for (let probes = this.#lags ? 6 : 3; probes > 0; probes--) {
      await this.#cloud.sandbox.nextRequest(isProbe)
    }
    await this.#hub.online()
    this.#link.is('online')
  }

  async #cut({ what, bytes, viewer, collection }: Op<'cut'>): Promise<void> {
    const { state } = this.#link
    const asks = { viewer, collection }
    {
      using _cut = this.#cloud.sandbox.faults.cut(bytes, ({ path }) => path !== '/readyz')
      this.#link.is(state === 'offline' ? 'offline' : 'unclear')
      if (what === 'follow') await this.#follow({ ...asks, from: 'own' })
      else await this.#list({ ...asks, ...plainList, version: 'any' })
    }
    if (state !== 'online') return
    await this.#steady()
  }

  /**
   * Everything is mended: every copy comes to be what the cloud has. Then the link is cut, and what
   * was shown is there.
   */
  async end(): Promise<void> {
    this.trace.push(`${this.#history.newest} ${this.#link.state} the end`)
    this.#link.thaw()
    this.#link.mend()
    await this.#link.catchUp()
    await this.#steady()
    await Promise.all(this.#loose)
    if (this.#setup.damaged !== undefined) return this.#readDamaged(this.#setup.damaged)
    if (this.#diskFails) {
      await this.#healDisk()
      // Before they are listed again: what has missed a write is not there.
      await this.#readOffline()
      this.#link.mend()
      await this.#steady()
    }
    for (const [viewer, { followers, peeks }] of this.#viewers.entries()) {
      for (const peek of peeks.values()) peek.leave()
      for (const follower of followers.values()) {
        const collection = this.#setup.collections.indexOf(follower.collection)
        await this.#converge(follower, { viewer, collection })
      }
    }
    this.#throwIfAny()
    for (const follower of this.#followers()) follower.leave()
    await this.#readOffline()
  }

  /**
   * Cuts the link, lists what was followed by programs whose filters have their inputs, and gets
   * each object there is.
   */
  async #readOffline(): Promise<void> {
    this.#cutLink()
    await this.#steady()
    for (const [viewer, each] of this.#viewers.entries()) {
      for (const follower of each.followers.values()) {
        // A read for a filter that lacks its inputs would wait for them.
        if (!this.#knowsInputs(each, follower.collection)) continue
        const collection = this.#setup.collections.indexOf(follower.collection)
        await this.do({ viewer, collection, ...plainList })
        const { resource } = follower.collection
        for (const of of this.#history.objects({ resource }, this.#history.newest).values()) {
          const { namespace, name } = of
          await this.do({
            do: 'get',
            viewer,
            resource,
            namespace,
            name,
            version: 'none',
            loose: false,
          })
        }
      }
    }
  }

  /**
   * Cuts the link, damages what is stored of objects of a name, and gets each object twice, since a
   * damage is found by reading: what is unknown is neither absent nor as it was before.
   */
  async #readDamaged(name: string): Promise<void> {
    this.#throwIfAny()
    for (const follower of this.#followers()) follower.leave()
    this.#cutLink()
    await this.#steady()
    this.#hub.damage(name)
    const resources = new Set(this.#setup.collections.map(({ resource }) => resource))
    const gets = this.#viewers.flatMap((viewer, at) =>
      [...resources].flatMap((resource) =>
        [...this.#history.objects({ resource }, this.#history.newest).values()].map(
          ({ namespace, name: of }) => ({ viewer, at, resource, namespace, of }),
        ),
      ),
    )
    for (const { viewer, at, of, ...place } of [...gets, ...gets]) {
      viewer.audience.mayBeUnknown()
      const get = { do: 'get', viewer: at, name: of, version: 'none', loose: false } as const
      await this.#get({ ...get, ...place })
    }
  }

  async #converge(
    follower: ModelReflector,
    asks: { readonly viewer: number; readonly collection: number },
  ): Promise<void> {
    if (!this.#setup.patient) follower.leave()
    // A server that lags would have its say only with the next writes.
    const newest = this.#history.newest - this.#setup.lag
    for (let tries = 0; tries < 10 && !follower.hasReached(newest); tries++) {
      if (!follower.isOpen) await this.#follow({ ...asks, from: 'own' })
      await follower.begun()
      await follower.caughtUp(newest)
    }
    if (!follower.isOpen) throw new Finding(`${pathOf(follower.collection)} cannot be followed`)
    if (this.#setup.lag > 0 || this.#setup.disk) {
      follower.leave()
      await this.do({ ...asks, ...plainList })
    }
    follower.checkInStep()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const follower of this.#followers()) follower.leave()
    this.#link.thaw()
    this.#link.mend()
    await this.#hub[Symbol.asyncDispose]()
    await this.#second?.[Symbol.asyncDispose]()
    await this.#cloud.sandbox[Symbol.asyncDispose]()
  }
}

const plainList = { do: 'list', version: 'none', match: '', limit: 0, loose: false } as const

function wantedVersion({ version }: Op<'list'>, own: number, history: History): string {
  switch (version) {
    case 'none':
      return ''
    case 'any':
      return '0'
    case 'own':
      return own === 0 ? '0' : String(own)
    case 'older':
      return String(Math.max(history.first, own - 2))
    case 'future':
      return String(history.newest + 2)
  }
}

const programOf = ({ setup }: Viewer, { resource }: Pick<Collection, 'resource'>): string =>
  `${setup.component} ${resource}`

const answered = (answer: { status: number; object: JsonObject } | undefined): string =>
  answer === undefined
    ? 'broken off'
    : `answered ${answer.status} (${textAt(answer.object, 'message')})`

/** The version before which an answer to a list may not be. */
function leastVersion(wanted: string, floor: number, isOnline: boolean, newest: number): number {
  if (wanted === '') return isOnline ? newest : floor
  return wanted === '0' ? floor : Number(wanted)
}
