import { isObject, parseJson, type JsonObject } from './json.ts'
import { listAt, textAt, valueAt } from './json-at.ts'

/** On a Node: the `HubReport` of its hub, as JSON. */
const hubReportAnnotation = 'nodehub.io/hub-report'

/** What a hub says of itself on its Node. */
export interface HubReport {
  readonly version: string
  /** The newest schema of the store that this release knows, which it migrates its cache to. */
  readonly schema: number
  /** When the hub started, in RFC 3339. */
  readonly started: string
  /** Names of failing readiness checks. */
  readonly failing: readonly string[]
  /** Requests that the hub itself refused within the last hour, as `CODE COMPONENT`. */
  readonly refused: readonly string[]
}

/** The report on a Node; `undefined` where there is none, or none that can be read. */
export function hubReportIn(node: JsonObject): HubReport | undefined {
  const report = parseJson(textAt(node, 'metadata', 'annotations', hubReportAnnotation))
  const schema = valueAt(report, 'schema')
  const [version, started] = [textAt(report, 'version'), textAt(report, 'started')]
  if (!isObject(report) || typeof schema !== 'number' || version === '' || started === '')
    return undefined
  const texts = (name: string): string[] => listAt(report, name).map((each) => textAt(each))
  return { version, schema, started, failing: texts('failing'), refused: texts('refused') }
}

/** A merge patch of a Node that sets its report. */
export const hubReportPatch = (report: HubReport): JsonObject => ({
  metadata: { annotations: { [hubReportAnnotation]: JSON.stringify(report) } },
})
