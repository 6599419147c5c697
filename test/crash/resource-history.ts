import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { CloudServer } from '../kit/cloud.ts'

/** A change of an object in the cloud. */
export interface RecordedChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly version: number
  readonly name: string
  /** The state from then on; of a deleted object, its last. */
  readonly state: string
}

/** Changes objects of one resource of a cloud, and has the history of all of them. */
export class ResourceHistory {
  readonly #cloud: CloudServer
  readonly #gvr: GVR
  readonly #make: (name: string, filling: string) => JsonObject
  readonly #happened: RecordedChange[] = []
  readonly #names = new Set<string>()

  constructor(cloud: CloudServer, gvr: GVR, make: (name: string, filling: string) => JsonObject) {
    this.#cloud = cloud
    this.#gvr = gvr
    this.#make = make
  }

  get names(): readonly string[] {
    return [...this.#names]
  }

  get version(): number {
    return this.#happened.at(-1)?.version ?? 0
  }

  /** Creates or replaces an object. */
  set(name: string, filling: string): void {
    const { sandbox } = this.#cloud
    const type = this.#names.has(name) ? 'MODIFIED' : 'ADDED'
    const object = this.#make(name, filling)
    const before = sandbox.version
    if (type === 'ADDED') sandbox.create(this.#gvr, object)
    else sandbox.update(this.#gvr, object)
    this.#names.add(name)
    // What is filled as it was does not change, as at an API server.
    if (sandbox.version !== before)
      this.#note(type, name, stateOf(sandbox.get(this.#gvr, name, 'default')!))
  }

  delete(name: string): void {
    const { sandbox } = this.#cloud
    const state = stateOf(sandbox.get(this.#gvr, name, 'default')!)
    sandbox.delete(this.#gvr, name, 'default', { gracePeriodSeconds: 0 })
    this.#names.delete(name)
    this.#note('DELETED', name, state)
  }

  #note(type: RecordedChange['type'], name: string, state: string): void {
    this.#happened.push({ type, name, state, version: Number(this.#cloud.sandbox.version) })
  }

  /** What happened after `since`, up to `until`. */
  between(since: number, until: number): readonly RecordedChange[] {
    return this.#happened.filter(({ version }) => version > since && version <= until)
  }

  /** The objects at a version, by name. */
  at(version: number): ReadonlyMap<string, string> {
    const found = new Map<string, string>()
    for (const { type, name, state } of this.between(0, version)) {
      if (type === 'DELETED') found.delete(name)
      else found.set(name, state)
    }
    return found
  }
}

/** Identifies a state of an object: its version and contents. */
export function stateOf(object: JsonObject): string {
  const { uid, resourceVersion, annotations } = object['metadata'] as JsonObject
  const filling = (annotations as JsonObject | undefined)?.['test.example/filling']
  return JSON.stringify([uid, resourceVersion, filling])
}

export const fillingOf = (filling: string, length: number): JsonObject => ({
  'test.example/filling': filling.padEnd(length, `${filling} `),
})
