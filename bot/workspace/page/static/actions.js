/** What the acting person does: a call each. What does not work is told, where nobody else tells it. */

import * as api from "./data/api.js";
import { confirmDialog } from "./ui/dialog.js";
import { forwardDialog } from "./messages/forward_dialog.js";

const DELETION = {
  title: "Delete this message?",
  text: "It will be gone for everyone.",
  confirm: "Delete",
  danger: true,
};

/** `tell(words)` shows what did not work. */
export function makeActions(store, tell) {
  const as = () => store.route.as;
  const told = async (answer) => {
    const { ok, error } = await answer;
    if (!ok) tell(error);
  };
  const share = ({ channel, ts }, where) => api.forward({ as: as(), channel, ts, ...where });
  return {
    send: (body) => api.send(body),
    invite: (body) => told(api.send({ as: as(), ...body })),
    join: (body) => told(api.join({ as: as(), ...body })),
    react: ({ channel, ts }, name) => told(api.react({ as: as(), channel, ts, name })),
    saveEdit: ({ channel, ts }, text) => api.edit({ as: as(), channel, ts, text }),
    openThread: ({ channel, ts, thread_ts }) => (location.hash = store.href({ channel, thread: thread_ts || ts })),
    press: ({ channel, ts }, { action_id }, { block_id }, value) =>
      told(api.press({ as: as(), channel, ts, block_id, action_id, value })),
    forward: (message) => forwardDialog(message, { store, share }),
    runShortcut: ({ callback_id }, message = {}) =>
      told(api.runShortcut({ as: as(), callback_id, channel: message.channel, ts: message.ts })),
    openHome: (tab) => told(api.openHome({ as: as(), tab })),
    use: ({ id }, body) => api.useView({ as: as(), view_id: id, ...body }),
    submit: ({ id }, values) => api.submitView({ as: as(), view_id: id, values }),
    close: ({ id }, { all }) => api.closeView({ as: as(), view_id: id, all }),
    remove: async ({ channel, ts }) => {
      if (await confirmDialog(DELETION)) await told(api.remove({ as: as(), channel, ts }));
    },
  };
}
