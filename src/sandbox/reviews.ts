import { now } from '../base/clock.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { listAt, objectAt, optionalTextAt, textAt } from '../api/kube/json-at.ts'
import { methodNotAllowed, StatusError } from '../api/kube/status.ts'
import { sendObject } from './answer.ts'
import type { Api } from './call.ts'
import { apiVersionOfKind, gvkOf, type Kind } from './kinds.ts'
import { timestamp } from './object.ts'
import { bodyOf, formatOf, type ResourceCall } from './resource-call.ts'
import { issuer } from './tokens.ts'
import type { User } from './users.ts'

/** Whether a resource only answers its requests, and stores nothing. */
export const isReview = (kind: Kind): boolean =>
  kind.verbs.length === 1 && kind.verbs[0] === 'create'

/** Answers questions about users, tokens and rights. */
export async function answerReview(api: Api, call: ResourceCall): Promise<void> {
  const { kind, info } = call
  if (info.verb !== 'create' || info.name !== undefined) throw new StatusError(methodNotAllowed())
  const format = formatOf(call)
  const given = await bodyOf(call)
  const answered: JsonObject = {
    kind: kind.kind,
    apiVersion: apiVersionOfKind(kind),
    ...answers[kind.kind]?.(api, call, given),
  }
  sendObject(call, gvkOf(kind), answered, format, { status: 201 })
}

type Handler = (api: Api, call: ResourceCall, given: JsonObject) => JsonObject

const answers: Record<string, Handler> = {
  SelfSubjectReview: (_api, { user }) => ({
    metadata: { creationTimestamp: timestamp(now()) },
    status: { userInfo: userInfo(user) },
  }),
  TokenReview: (api, _call, given) => {
    const token = textAt(given, 'spec', 'token')
    const wanted = listAt(given, 'spec', 'audiences').map(String)
    const audience = (wanted.length > 0 ? wanted : [issuer]).find((one) =>
      api.tokens.userOf(token, one),
    )
    const user = audience === undefined ? undefined : api.tokens.userOf(token, audience)
    return {
      metadata: {},
      spec: objectAt(given, 'spec'),
      status: user
        ? { authenticated: true, user: userInfo(user), audiences: [audience ?? issuer] }
        : { error: '[invalid bearer token, unknown]', user: {} },
    }
  },
  SelfSubjectAccessReview: (api, { user }, given) => review(api, user, given),
  SubjectAccessReview: (api, _call, given) =>
    review(
      api,
      {
        name: textAt(given, 'spec', 'user'),
        groups: listAt(given, 'spec', 'groups').map(String),
      },
      given,
    ),
}

function review(api: Api, user: User, given: JsonObject): JsonObject {
  const resource = objectAt(given, 'spec', 'resourceAttributes')
  const path = objectAt(given, 'spec', 'nonResourceAttributes')
  const about = given['spec'] !== undefined && Object.keys(resource).length > 0
  const attributes = Object.fromEntries(
    ['group', 'version', 'resource', 'subresource', 'namespace', 'name'].flatMap((name) => {
      const value = optionalTextAt(resource, name)
      // The core group has no name, and is a group.
      const isThere = value !== undefined && (value !== '' || name === 'group')
      return isThere ? [[name, value] as const] : []
    }),
  )
  const verdict = api.authorizer()({
    user,
    verb: textAt(about ? resource : path, 'verb'),
    path: textAt(path, 'path'),
    ...attributes,
  })
  return {
    metadata: {},
    spec: objectAt(given, 'spec'),
    status: {
      allowed: verdict === true,
      ...(typeof verdict === 'string' && { reason: verdict }),
    },
  }
}

const userInfo = ({ name, uid, groups, extra }: User): JsonObject => ({
  username: name,
  ...(uid !== undefined && { uid }),
  groups,
  ...(extra && { extra: { ...extra } }),
})
