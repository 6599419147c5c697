import { listAt } from '../../../api/kube/json-at.ts'
import { isEmptyTerm, requiredNodeAffinity } from '../../../api/kube/node-affinity.ts'
import { documents } from '../documents.ts'
import type { Path } from '../finding.ts'
import { requiredTerms } from '../placement.ts'
import { inSpec } from '../pod.ts'
import type { Rule } from '../rule.ts'

const termsPath = [...requiredNodeAffinity.slice(1), 'nodeSelectorTerms']

export const affinityValueNotText: Rule = {
  id: 'affinity-value-not-text',
  level: 'error',
  title: 'a value of node affinity that is no text',
  reason:
    'Values of labels are texts; the API server refuses true, and every number, without quotes.',
  document: documents.assigning,
  *checkPod(pod) {
    for (const [number, term] of (requiredTerms(pod) ?? []).entries()) {
      for (const [each, expression] of listAt(term, 'matchExpressions').entries()) {
        for (const [index, value] of listAt(expression, 'values').entries()) {
          if (typeof value === 'string') continue
          const path: Path = [...termsPath, number, 'matchExpressions', each, 'values', index]
          yield {
            path: inSpec(pod, ...path),
            message: `${JSON.stringify(value)} is no text: write it in quotes`,
          }
        }
      }
    }
  },
}

export const affinityMatchesNothing: Rule = {
  id: 'affinity-matches-nothing',
  level: 'warning',
  title: 'a term of node affinity that matches no node',
  reason:
    'A term without expressions matches no node, and not every node: alone it keeps the pod off all of them.',
  document: documents.assigning,
  *checkPod(pod) {
    for (const [number, term] of (requiredTerms(pod) ?? []).entries()) {
      if (!isEmptyTerm(term)) continue
      yield {
        path: inSpec(pod, ...termsPath, number),
        message: 'this term matches no node: take it out',
      }
    }
  },
}
