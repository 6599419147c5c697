import { answerDeadline } from '../../../http/exchange/answer-deadline.ts'
import { wholeText } from '../../../http/exchange/chunks.ts'
import type { BytesReply, Handler, Exchange } from '../../../http/exchange/exchange.ts'
import { isFromApiServer } from '../../../http/exchange/headers.ts'
import { ownRequest, type RequestCredentials } from '../../../http/exchange/own-request.ts'
import type { GVR } from '../../../api/kube/gvk.ts'
import { mediaType } from '../../../api/kube/media-type.ts'

/** How long a review may take. */
const patienceMs = 10_000
const mostBytes = 64 * 1024

const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'

/**
 * Whether these credentials may list and watch all of a resource, by SelfSubjectAccessReviews,
 * which every authenticated user may create. `undefined`: no verdict.
 */
export async function mayListAndWatch(
  ask: Handler<Exchange, BytesReply>,
  who: RequestCredentials,
  gvr: GVR,
): Promise<boolean | undefined> {
  const verdicts = await Promise.all(
    (['list', 'watch'] as const).map((verb) => may(ask, who, gvr, verb)),
  )
  if (verdicts.includes(false)) return false
  return verdicts.includes(undefined) ? undefined : true
}

async function may(
  ask: Handler<Exchange, BytesReply>,
  who: RequestCredentials,
  gvr: GVR,
  verb: 'list' | 'watch',
): Promise<boolean | undefined> {
  using deadline = answerDeadline(patienceMs)
  const review = {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    spec: { resourceAttributes: { verb, ...gvr } },
  }
  try {
    const type = mediaType('json')
    const content = { type, bytes: Buffer.from(JSON.stringify(review)) }
    const request = { ...who, method: 'POST', url: path, accept: type, content } as const
    const reply = await ask(ownRequest({ ...request, signal: deadline.signal }))
    const text = await wholeText(reply.source, mostBytes)
    if (!isFromApiServer(reply.headers)) return undefined
    // Credentials that may not create a review may read nothing.
    if (reply.status === 401 || reply.status === 403) return false
    if (reply.status !== 201) return undefined
    const { status } = JSON.parse(text) as { status?: { allowed?: unknown; denied?: unknown } }
    return status?.allowed === true && status.denied !== true
  } catch {
    // After any failure there is no verdict.
    return undefined
  }
}
