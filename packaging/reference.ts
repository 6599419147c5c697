import { commands } from '../src/cli/cli.ts'
import type { Command } from '../src/cli/command.ts'
import { isAcceptedOnly, type OptionTable } from '../src/config/option.ts'

/** A command or subcommand as manuals have it. */
export interface ReferenceSection extends Command {
  /** `cluster check`. */
  readonly name: string
  /** Flags with an effect that no section before has. */
  readonly own: OptionTable
  /** The names of the others, by the section that has them. */
  readonly others: ReadonlyMap<string, readonly string[]>
}

/** Every command with its subcommands, in the order of `nodehub --help`. */
export async function reference(): Promise<readonly ReferenceSection[]> {
  const sections: ReferenceSection[] = []
  const owners = new Map<unknown, string>()
  const add = (name: string, command: Command): void => {
    const flags = Object.entries(command.flags ?? {}).filter(
      ([, { group }]) => !isAcceptedOnly(group),
    )
    const known = flags.filter(([, option]) => owners.has(option))
    const others = Map.groupBy(known, ([, option]) => owners.get(option) ?? '')
    const own = flags.filter(([, option]) => !owners.has(option))
    for (const [, option] of own) owners.set(option, name)
    sections.push({
      ...command,
      name,
      own: Object.fromEntries(own),
      others: new Map([...others].map(([owner, each]) => [owner, each.map(([flag]) => flag)])),
    })
  }
  for (const [name, { load }] of Object.entries(commands)) {
    const command = await load([])
    add(name, command)
    for (const word of command.subcommands ?? []) add(`${name} ${word}`, await load([word]))
  }
  return sections
}
