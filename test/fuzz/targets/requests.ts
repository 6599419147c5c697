import {
  canonicalFieldSelector,
  canonicalLabelSelector,
  MalformedSelector,
} from '../../../src/api/kube/selectors.ts'
import { representationsOf } from '../../../src/api/request/representation.ts'
import { componentOf } from '../../../src/api/request/component.ts'
import {
  isLongRunning,
  MalformedPath,
  namedBySelector,
  parseRequestInfo,
} from '../../../src/api/request/request-info.ts'
import { mutated } from '../mutate.ts'
import { Finding, pure, type Opening, type Outcome } from '../target.ts'

const words = {
  url: [
    '/api/v1/pods?fieldSelector=spec.nodeName%3Dedge-1&limit=500&resourceVersion=0',
    '/api/v1/namespaces/default/pods/a%2Fb/log?follow=true',
    '/apis/apps/v1/watch/namespaces/kube-system/deployments/x?watch=1',
    '/api/v1/namespaces/x/services/https:y:443/proxy/a//b/../%2e%2e/c',
    '/../api/v1/./nodes/%00?labelSelector=a%20in%20(b,c)',
  ],
  accept: [
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.9,*/*;q=0.1',
    'application/vnd.kubernetes.protobuf;stream=watch, application/json',
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;q=1e999;;=,;',
  ],
  labels: ['a=b,c!=d,e in (f,g),h notin (i),!j,k>1,l<2,m', 'a==b', '', 'x in ()', '!', 'a in (b'],
  fields: ['metadata.name=a,spec.nodeName!=b', 'a==b\\,c\\=d\\\\', '', 'a=', '=,=', 'a!=b!=c'],
}

const buffers = Object.fromEntries(
  Object.entries(words).map(([key, texts]) => [key, texts.map((text) => Buffer.from(text))]),
) as Record<keyof typeof words, Buffer[]>

/**
 * What is read of a request before anybody is asked: nothing but its refusals is thrown, and
 * canonical forms are their own.
 */
export const requestTargets: readonly Opening[] = [
  pure('request-info', (random) => {
    const input = mutated(random, random.of(buffers.url), buffers.url)
    const accept = mutated(random, random.of(buffers.accept), buffers.accept).toString('latin1')
    return refusing(input, MalformedPath, () => {
      const info = parseRequestInfo(
        random.of(['GET', 'POST', 'HEAD', 'BREW']),
        input.toString('latin1'),
      )
      isLongRunning(info)
      representationsOf(accept, info.query)
      componentOf(accept)
      if (!info.isResource) return
      namedBySelector(info)
      const parts = [info.gvr.group, info.gvr.version, info.gvr.resource, info.namespace, info.name]
      if (parts.some((part) => part === '.' || part === '..' || /[/\0]/.test(part ?? ''))) {
        throw new Finding('a path that two readers read differently', input)
      }
    })
  }),
  pure('label-selector', (random) => {
    const input = mutated(random, random.of(buffers.labels), buffers.labels)
    return sameAgain(input, canonicalLabelSelector)
  }),
  pure('field-selector', (random) => {
    const input = mutated(random, random.of(buffers.fields), buffers.fields)
    return sameAgain(input, canonicalFieldSelector)
  }),
]

function sameAgain(input: Buffer, canonical: (text: string) => string): Outcome {
  return refusing(input, MalformedSelector, () => {
    const once = canonical(input.toString('latin1'))
    if (canonical(once) !== once) throw new Finding('a canonical form that is not its own', input)
  })
}

type Refusal = typeof MalformedPath | typeof MalformedSelector

function refusing(input: Buffer, Refused: Refusal, act: () => void): Outcome {
  try {
    act()
    return 'taken'
  } catch (error) {
    if (error instanceof Finding) throw error
    if (error instanceof Refused) return 'refused'
    throw new Finding('neither an answer nor a refusal', input, error)
  }
}
