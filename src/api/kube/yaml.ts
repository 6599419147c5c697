import type { ParseOptions, DocumentOptions, ScalarTag, SchemaOptions, Tags } from 'yaml'

/** What sigs.k8s.io/yaml keeps as text: dates, and numbers to the base of 60. */
const readAsText = (tag: Tags[number]): boolean =>
  typeof tag !== 'string' &&
  (tag.tag === 'tag:yaml.org,2002:timestamp' || ('format' in tag && tag.format === 'TIME'))

/** Octal as Go writes it, which YAML 1.1 does not know. */
const goOctal: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?0o[0-7_]+$/,
  resolve: (text) => Number(text.replaceAll(/[-+_]/g, '')) * (text.startsWith('-') ? -1 : 1),
}

/**
 * YAML as kubectl, kubelet and client-go read it (sigs.k8s.io/yaml, go-yaml 2): `yes` and `on` are
 * true, `010` is eight, `10_267` a number, and of a key that is given twice the last counts. For
 * the parser of the package `yaml`, without the warnings that it prints.
 */
export const kubernetesYaml = {
  version: '1.1',
  customTags: (tags) => [goOctal, ...tags.filter((tag) => !readAsText(tag))],
  uniqueKeys: false,
  logLevel: 'error',
} as const satisfies ParseOptions & DocumentOptions & SchemaOptions
