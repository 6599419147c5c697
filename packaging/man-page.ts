import { ownVersion } from '../src/base/own-version.ts'
import { programName } from '../src/cli/command.ts'
import { examplesOf } from '../src/cli/examples.ts'
import { flagText, flagUsage, otherSources } from '../src/cli/flag-help.ts'
import { summary } from './package-facts.ts'
import { reference, type ReferenceSection } from './reference.ts'

/** Where packages install it. */
export const manPageFile = '/usr/share/man/man1/nodehub.1'

/** A text as roff prints it: no character of it is a request, an escape or a break of a word. */
const escaped = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(
      /[^\n -~]/g,
      (each) => `\\[u${each.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replaceAll(/^(?=[.'])/gm, '\\&')

/** Paragraphs; one with an indented line keeps its lines. */
const paragraphs = (text: string): string =>
  text
    .trimEnd()
    .split('\n\n')
    .map((each) => (/^ /m.test(each) ? asItIs(each) : `.PP\n${escaped(each)}\n`))
    .join('')

const asItIs = (text: string): string => `.PP\n.nf\n${escaped(text.trimEnd())}\n.fi\n`

function section({ name, own, others, ...command }: ReferenceSection): string {
  const [word = '', subcommand] = name.split(' ')
  const { usage, description, flagsOf } = command
  const flags = Object.entries(own).map(
    ([flag, option]) =>
      `.TP\n.B ${escaped(flagUsage(flag, option))}\n${escaped(flagText(option))}\n`,
  )
  const elsewhere = [...others].map(
    ([owner, names]) => `As for ${owner}: ${names.map((each) => `--${each}`).join(', ')}.`,
  )
  const forms = usage.split('\n').map(programName)
  return [
    `.SS ${escaped(name)}\n`,
    asItIs(forms.join('\n')),
    paragraphs(description),
    ...flags,
    flagsOf === undefined
      ? elsewhere.map(paragraphs).join('')
      : paragraphs(`The flags are those of ${flagsOf}.`),
    asItIs(examplesOf(word, subcommand)),
  ].join('')
}

/** `nodehub.1`: every command with its flags and examples. */
export const manPage = `.TH NODEHUB 1 "" "nodehub ${ownVersion()}" "User Commands"
.SH NAME
nodehub \\- ${escaped(summary)}
.SH SYNOPSIS
.B nodehub
.I COMMAND
.RI [ FLAG ...]
.SH DESCRIPTION
${paragraphs(
  'Online the hub forwards requests to the API servers and records the answers; offline it answers from its records.',
)}.SH COMMANDS
${(await reference()).map(section).join('')}.SH ENVIRONMENT
${paragraphs(otherSources)}${paragraphs(
  'The same holds for the flags of cluster and its subcommands. The other commands take NODEHUB_JOIN_TOKEN for --join-token alone.',
)}.SH FILES
.TP
.I /etc/nodehub/config.yaml
Settings of the packaged service.
.TP
.I /opt/nodehub/config.schema.json
The JSON Schema of such a file.
.TP
.I /var/lib/nodehub
Keys, state and cache.
.TP
.I /opt/nodehub/docs
The pages that help texts and messages name as docs/NAME.md.
.SH EXIT STATUS
${paragraphs('0: success. 1: the command failed or found something. 2: invalid arguments.')}`
