import type { IncomingMessage } from 'node:http'
import { badRequest, internalError, StatusError, type Status } from '../api/kube/status.ts'
import { MalformedSelector } from '../api/kube/selectors.ts'
import { MalformedPath, parseRequestInfo, type RequestInfo } from '../api/request/request-info.ts'
import { messageOf } from '../config/settings.ts'
import { sendStatus } from './answer.ts'
import { attributesOf, authenticate, authorize } from './authentication.ts'
import type { Api, Call } from './call.ts'
import { negotiate, plainJson, type ResponseFormat } from './negotiation.ts'
import type { ResponseWriter } from './response-writer.ts'
import { answerPath } from './paths.ts'
import type { SeenRequest } from './requests.ts'
import { answerResource } from './resources.ts'
import type { View } from './storage.ts'
import type { User } from './users.ts'

/** Answers a request; failures become their Status. */
export async function answer(
  api: Api,
  request: IncomingMessage,
  seen: SeenRequest,
  writer: ResponseWriter,
  view: View,
  certified: User | undefined,
): Promise<void> {
  try {
    const { user, info } = admit(api, seen, certified)
    const call: Call = { request, seen, writer, view, user, info }
    if (!(info.isResource && (await answerResource(api, call)))) answerPath(api, call)
  } catch (cause) {
    if (writer.started || !writer.isOpen) writer.break()
    else sendStatus({ seen, writer }, statusOf(cause), formatOfError(seen))
  }
}

/**
 * Authenticates and authorizes a request. Throws a StatusError: 401 or 403; or `MalformedPath`.
 */
export function admit(
  api: Api,
  seen: SeenRequest,
  certified: User | undefined,
): { user: User; info: RequestInfo } {
  const user = authenticate(
    certified,
    seen.headers['authorization'] as string | undefined,
    api.tokens,
    api.anonymousAllowed,
  )
  seen.user = user
  const info = parseRequestInfo(seen.method, seen.url)
  if (info.isResource) seen.resource = info
  authorize(attributesOf(info, user), api.authorizer())
  return { user, info }
}

export function statusOf(cause: unknown): Status {
  if (cause instanceof StatusError) return cause.status
  const isMalformed = cause instanceof MalformedPath || cause instanceof MalformedSelector
  return (isMalformed ? badRequest : internalError)(messageOf(cause))
}

/** The negotiated encoding of a Status, where it is one of those served; else indented JSON. */
function formatOfError(seen: SeenRequest): ResponseFormat {
  try {
    const offer = { protobuf: true, conversions: true }
    return { ...negotiate(seen, offer), projection: 'object' }
  } catch {
    return { ...plainJson(seen), pretty: true }
  }
}
