/**
 * What differs between two runs of one command whatever answers it, from the most to the least
 * particular.
 */
const masks: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UID'],
  // kubectl's race with itself: the empty message that opens a stream may come before it has made
  // the stream.
  [/^E\d{4} .*websocket\.go:\d+\] Unknown stream id \d+, discarding message\n/gm, ''],
  // kubectl's own log lines: level, date, time, process id.
  [/^[IWEF]\d{4} [\d:.]+ +\d+ /gm, 'KLOG '],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME'],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME'],
  [/\bhttps?:\/\/127\.0\.0\.1:\d+/g, 'SERVER'],
  [/\b(127\.0\.0\.1|\[::1\]):\d+/g, 'LOOPBACK'],
  [/\S*kubectl-edit-[\w-]+\.yaml/g, 'EDITED'],
  // API servers that turn WebSocket into SPDY themselves may say it twice.
  [/(Internal error occurred: )+/g, '$1'],
  // The runtime names what it runs.
  [/\b[0-9a-f]{64}\b/g, 'ID'],
  [/(resourceVersion"?: ?)"\d+"/g, '$1"VERSION"'],
  [/\b(\d+[dhms])+(?= |$)/gm, 'AGE'],
  [/<(invalid|unknown)>(?= *$)/gm, 'AGE'],
  // Columns are as wide as what stands in them.
  [/ {2,}/g, '  '],
]

/**
 * `text` without what differs by when, where and on what it was said; `namespace` is each run's
 * own.
 */
export function masked(text: string, namespace: string): string {
  return masks.reduce(
    (left, [pattern, instead]) => left.replace(pattern, instead),
    text.replaceAll(namespace, 'NAMESPACE'),
  )
}

/** How the warning of a hub's cache begins. */
export const staleness =
  "Warning: answered from the node's cache: the cloud has not confirmed this since "

export const withoutStaleness = (stderr: string): string =>
  stderr
    .split('\n')
    .filter((line) => !line.startsWith(staleness))
    .join('\n')
