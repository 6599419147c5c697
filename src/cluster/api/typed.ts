import {
  CoordinationV1Api,
  createConfiguration,
  ResponseContext,
  ServerConfiguration,
  wrapHttpLibrary,
  type RequestContext,
} from '@kubernetes/client-node'
import type { ApiRequest, ApiServer, Method } from './api-server.ts'
import { ApiFailure } from './failure.ts'

/** How all requests are made. */
type Manner = Pick<ApiRequest, 'urgent' | 'timeoutMs'>

/**
 * Calls of @kubernetes/client-node for Leases, whose type the library knows in full (it drops the
 * members that it does not know), over `api`: the same connections, rate and counters as any other
 * request (by itself the library makes a connection for each call). They reject with `ApiFailure`.
 */
export function typedCalls(api: ApiServer, manner: Manner): CoordinationV1Api {
  const configuration = createConfiguration({
    baseServer: new ServerConfiguration(api.url.href.replace(/\/$/, ''), {}),
    httpApi: wrapHttpLibrary({ send: (context) => sent(api, context, manner) }),
  })
  return new CoordinationV1Api(configuration)
}

async function sent(
  api: ApiServer,
  context: RequestContext,
  manner: Manner,
): Promise<ResponseContext> {
  const url = new URL(context.getUrl())
  const prefix = api.url.pathname.replace(/\/$/, '')
  const method = context.getHttpMethod().toString() as Method
  const path = `${url.pathname.slice(prefix.length)}${url.search}`
  const body = context.getBody() as string | undefined
  const contentType = headerOf(context.getHeaders(), 'content-type')
  const signal = context.getSignal()
  const {
    status,
    headers,
    body: text,
  } = await api.send({
    method,
    path,
    ...(body !== undefined && { body }),
    ...(contentType !== undefined && { contentType }),
    ...(signal && { signal }),
    ...manner,
  })
  if (status >= 400) throw new ApiFailure(`${method} ${path}`, status, text)
  return new ResponseContext(status, headers as Record<string, string>, {
    text: () => Promise.resolve(text),
    binary: () => Promise.resolve(Buffer.from(text)),
    stream: () => null,
  })
}

const headerOf = (headers: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
