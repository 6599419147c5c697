import type { TokenSpec } from '../codec/token-request.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { canonicalFieldSelector, canonicalLabelSelector } from '../kube/selectors.ts'
import type { Form, FormKey } from '../request/form.ts'
import type { ResourceRequest } from '../request/request-info.ts'
import { keptTokens, tokenName } from './token-name.ts'
import type { Audience, CollectionKey, DocumentKey, ObjectKey } from './store.ts'

/** The selectors of a list or watch, in one spelling for what means the same. Throws `MalformedSelector`. */
export function selectorsOf({ query }: ResourceRequest): {
  labelSelector: string
  fieldSelector: string
} {
  return {
    labelSelector: canonicalLabelSelector(query.get('labelSelector') ?? ''),
    fieldSelector: canonicalFieldSelector(query.get('fieldSelector') ?? ''),
  }
}

const audienceOf = ({ identity, component }: Exchange, form: FormKey): Audience => ({
  identity,
  form,
  ...(component === 'kubectl' && { passing: true }),
})

/** The key of what a list or watch covers. Throws `MalformedSelector`. */
export function collectionKey(
  exchange: Exchange,
  info: ResourceRequest,
  form: Form,
): CollectionKey {
  return {
    audience: audienceOf(exchange, form.key),
    gvr: info.gvr,
    ...(info.namespace !== undefined && { namespace: info.namespace }),
    ...selectorsOf(info),
  }
}

/** The key of what lists in this form hold of the object that a get names. */
export const memberKey = (exchange: Exchange, info: ResourceRequest, form: Form): ObjectKey => ({
  audience: audienceOf(exchange, form.key),
  gvr: info.gvr,
  namespace: info.namespace ?? '',
  name: info.name ?? '',
})

/**
 * The key of what a get names. A Table of one object is not a row of a Table of many: rows are kept without the columns that say what
 * they mean, so the two are kept apart.
 */
export function objectKey(exchange: Exchange, info: ResourceRequest, form: Form): ObjectKey {
  if (form.shape !== 'table') return memberKey(exchange, info, form)
  const single = { ...form, key: `${form.key};single` as FormKey }
  return memberKey(exchange, info, single)
}

/** The key of the answer to a token request. */
export function tokenKey(
  exchange: Exchange,
  info: ResourceRequest,
  form: Form,
  spec: TokenSpec,
): ObjectKey {
  return {
    audience: audienceOf(exchange, form.key),
    gvr: keptTokens,
    namespace: info.namespace ?? '',
    name: tokenName({ serviceAccount: info.name ?? '', ...spec }),
  }
}

/** The key of a document. Clients write a time-out into its URL, which changes nothing of it. */
export function documentKey(exchange: Exchange): DocumentKey {
  const query = new URLSearchParams(exchange.info.query)
  query.delete('timeout')
  const text = query.toString()
  return {
    identity: exchange.identity,
    url: text === '' ? exchange.info.path : `${exchange.info.path}?${text}`,
    accept: exchange.headers.get('accept') ?? '',
  }
}
