import type { JsonObject } from '../../api/kube/json.ts'
import type { Context } from './context.ts'
import type { Finding } from './finding.ts'
import { podsOf } from './pod.ts'
import { rules } from './rules.ts'

/** The findings in one object, in the order of the rules. */
export function findingsIn(object: JsonObject, context: Context): readonly Finding[] {
  const pods = podsOf(object)
  return rules.flatMap((rule) => {
    const found =
      rule.about === 'pod'
        ? pods.flatMap((pod) => [...rule.check(pod, context)])
        : [...rule.check(object, context)]
    return found.map(({ path, message, level }) => ({
      rule: rule.id,
      level: level ?? rule.level,
      message,
      path,
    }))
  })
}
