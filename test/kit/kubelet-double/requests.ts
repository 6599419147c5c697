import type { JsonObject } from '../../../src/api/kube/json.ts'
import { objectOf, type Client } from '../client.ts'

/** What a kubelet was answered that it cannot go on with. */
export class Stuck extends Error {
  readonly code: number
  constructor(what: string, code: number) {
    super(`${what}: ${code}`)
    this.code = code
  }
}

interface KubeletAnswer {
  readonly status: number
  readonly object: JsonObject
}

/** One request; throws `Stuck` for an answer of another code than those it can go on with. */
export async function ask(
  client: Client,
  method: string,
  path: string,
  { body, fine = [200] }: { body?: JsonObject; fine?: readonly number[] } = {},
): Promise<KubeletAnswer> {
  const answer = await client.send(path, { method, ...(body && { body }) })
  if (!fine.includes(answer.status)) throw new Stuck(`${method} ${path}`, answer.status)
  return { status: answer.status, object: objectOf(answer) }
}

/** A strategic merge patch, in JSON as all patches are. */
export async function patch(client: Client, path: string, change: JsonObject): Promise<JsonObject> {
  const answer = await client.send(path, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/strategic-merge-patch+json' },
    body: JSON.stringify(change),
  })
  if (answer.status !== 200) throw new Stuck(`PATCH ${path}`, answer.status)
  return objectOf(answer)
}

export const get = async (client: Client, path: string): Promise<JsonObject> =>
  (await ask(client, 'GET', path)).object
