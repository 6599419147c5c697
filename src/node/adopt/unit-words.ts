/** How systemd reads the command line of a service (systemd.service(5), systemd.syntax(7)). */

/** The command line of a service. */
export interface UnitStart {
  /** The words of ExecStart, with variables in them replaced. */
  readonly words: readonly string[]
  readonly environment: ReadonlyMap<string, string>
}

/** A unit cannot be understood; the message says why, as part of a sentence. */
export class UnreadableUnit extends Error {
  readonly code = 'NOT_UNDERSTOOD'
}

/**
 * Reads a unit and its drop-ins, in their order. `environmentFile` returns the text of a file that
 * they name; `undefined` where it is not there. Throws `UnreadableUnit`.
 */
export function unitStart(
  texts: readonly string[],
  environmentFile: (path: string) => string | undefined,
): UnitStart {
  const settings = texts.flatMap(serviceSettings)
  const commands = inForce(settings, 'ExecStart')
  if (commands.length !== 1) {
    throw new UnreadableUnit(`it has ${commands.length} ExecStart lines, and one is expected`)
  }
  const environment = new Map(inForce(settings, 'Environment').flatMap(assignmentsIn))
  for (const word of inForce(settings, 'EnvironmentFile')) {
    const path = word.replace(/^-/, '')
    const text = environmentFile(path)
    if (text === undefined && !word.startsWith('-'))
      throw new UnreadableUnit(`its EnvironmentFile ${path} is not there`)
    for (const [name, value] of fileAssignments(text ?? '')) environment.set(name, value)
  }
  const words = wordsIn(withoutSpecifiers((commands[0] ?? '').replace(/^[-@:+!|]*/, '')))
  return { words: words.flatMap((word) => substituted(word, environment)), environment }
}

type Setting = readonly [name: string, value: string]

/** The settings of section Service; a backslash at the end joins two lines. */
function serviceSettings(text: string): readonly Setting[] {
  const settings: Setting[] = []
  let section = ''
  let begun = ''
  for (const line of text.split('\n')) {
    if (/^\s*[#;]/.test(line)) continue
    const whole = `${begun}${line}`
    begun = whole.endsWith('\\') ? `${whole.slice(0, -1)} ` : ''
    if (begun !== '') continue
    section = /^\s*\[(.*)\]\s*$/.exec(whole)?.[1] ?? section
    const setting = assignmentIn(whole)
    if (section === 'Service' && setting) settings.push(setting)
  }
  return settings
}

/** `NAME=VALUE`, without blanks around either. */
function assignmentIn(line: string): Setting | undefined {
  const at = line.indexOf('=')
  return at < 0 ? undefined : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

/** The values of a setting since it was last emptied. */
function inForce(settings: readonly Setting[], name: string): readonly string[] {
  const values = settings.filter(([each]) => each === name).map(([, value]) => value)
  return values.slice(values.lastIndexOf('') + 1)
}

const assignmentsIn = (text: string): readonly Setting[] =>
  wordsIn(withoutSpecifiers(text)).flatMap((word): Setting[] => {
    const at = word.indexOf('=')
    return at > 0 ? [[word.slice(0, at), word.slice(at + 1)]] : []
  })

function fileAssignments(text: string): readonly Setting[] {
  return text
    .replaceAll('\\\n', '')
    .split('\n')
    .filter((line) => !/^\s*[#;]/.test(line))
    .flatMap((line): Setting[] => {
      const setting = assignmentIn(line)
      return setting ? [[setting[0], setting[1].replace(/^(["'])(.*)\1$/, '$2')]] : []
    })
}

/** `%%` is a percent sign; the values that systemd would fill in for others are not known here. */
function withoutSpecifiers(text: string): string {
  const specifier = /%(?!%)./.exec(text.replaceAll('%%', ''))?.[0]
  if (specifier !== undefined) {
    throw new UnreadableUnit(`it has the specifier ${specifier}: write what it stands for`)
  }
  return text.replaceAll('%%', '%')
}

/** Splits at blanks that are not in quotes. */
function wordsIn(text: string): readonly string[] {
  const words: string[] = []
  const word = /\s*((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\\.|[^\s"'\\])+)/gy
  let end = 0
  for (const { 0: found, 1: quoted = '' } of text.matchAll(word)) {
    end += found.length
    words.push(unquoted(quoted))
  }
  if (text.slice(end).trim() !== '')
    throw new UnreadableUnit(`the quotes in it do not end: ${text.slice(end).trim().slice(0, 20)}`)
  return words
}

const unquoted = (text: string): string =>
  text.replace(/\\(.)|["']/g, (_, escaped: string | undefined) => escaped ?? '')

/** `$NAME` alone becomes the words of its value, `${NAME}` its value; `$$` is a dollar sign. */
function substituted(word: string, environment: ReadonlyMap<string, string>): readonly string[] {
  const alone = /^\$(\w+)$/.exec(word)?.[1]
  if (alone !== undefined) return wordsIn(environment.get(alone) ?? '')
  return [
    word.replace(/\$\$|\$\{(\w+)\}/g, (_, name: string | undefined) =>
      name === undefined ? '$' : (environment.get(name) ?? ''),
    ),
  ]
}
