/** A conversation on which templates and their implementations differ. `plain`: it has only one user message. */
export interface Conversation {
  readonly name: string
  readonly messages: ReadonlyArray<object>
  readonly plain?: boolean
}

const user = (content: unknown) => ({ role: "user", content })
const assistant = (content: unknown) => ({ role: "assistant", content })

/** A change of one raises the suite version. */
export const conversations: ReadonlyArray<Conversation> = [
  { name: "one_turn", messages: [user("Hello")], plain: true },
  { name: "system", messages: [{ role: "system", content: "Answer briefly." }, user("Hello")] },
  { name: "three_turns", messages: [user("Hello"), assistant("Hello! How can I help you?"), user("Count from 3 to 5.")] },
  { name: "many_turns", messages: [user("One"), assistant("1"), user("Two"), assistant("2"), user("Three"), assistant("3"), user("Four")] },
  { name: "two_users", messages: [user("Hello"), user("Count from 3 to 5.")] },
  { name: "empty_content", messages: [user("Hello"), assistant(""), user("Are you there?")] },
  { name: "empty_user", messages: [user("")] },
  { name: "content_parts", messages: [user([{ type: "text", text: "Hello" }])] },
  {
    name: "two_parts",
    messages: [
      user([
        { type: "text", text: "Say" },
        { type: "text", text: "yes" }
      ])
    ]
  },
  { name: "markup", messages: [user("<|end|></s> [INST] {{ bos_token }} <b>bold</b>")] },
  { name: "blanks", messages: [user("  two lines  \n\n  with blanks  ")] },
  { name: "scripts", messages: [user("请用中文写一句话。 👩‍🚀 naïve")] },
  { name: "system_turns", messages: [{ role: "system", content: "Answer in one word." }, user("Is ice cold?"), assistant("Yes"), user("Is fire?")] }
]
