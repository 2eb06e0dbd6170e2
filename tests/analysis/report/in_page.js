// What a reader with good eyes would find wrong in a page, found by measuring. Each function answers a list of complaints.
const inside = (element) => element.closest(".scroll, .picture, pre");
const shown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 0;
const named = (element) => `${element.tagName.toLowerCase()}.${element.className} "${(element.textContent || "").trim().slice(0, 40)}"`;
const visible = (root) => [...document.querySelectorAll(root)].filter((element) => !element.parentElement?.closest("svg") && shown(element));

window.look = {
  // Nothing sticks out of the window but what lies in a box of its own that scrolls.
  cut() {
    return visible("body *")
      .filter((element) => !inside(element.parentElement))
      .filter((element) => {
        const box = element.getBoundingClientRect();
        return box.left < -0.5 || box.right > document.documentElement.clientWidth + 0.5;
      })
      .map(named);
  },
  // In a box that scrolls everything can be reached, and the reader is told that there is more.
  unannounced() {
    return visible(".scroll, .picture")
      .filter((box) => box.scrollWidth > box.clientWidth + 1)
      .filter((box) => {
        const hint = box.previousElementSibling;
        const told = hint && hint.classList.contains("hint") && shown(hint);
        const shaded = getComputedStyle(box).backgroundImage.includes("gradient");
        return !(told || shaded) || !["auto", "scroll"].includes(getComputedStyle(box).overflowX) || box.tabIndex !== 0;
      })
      .map(named);
  },
  // Text of one block does not run into the next.
  overlapping() {
    const complaints = [];
    for (const parent of visible("body, main, section, figure, figcaption, li, ul, ol, dl, tr, nav, details")) {
      const blocks = [...parent.children].filter((one) => shown(one) && getComputedStyle(one).display !== "inline");
      for (let at = 0; at < blocks.length; at += 1) {
        const one = blocks[at].getBoundingClientRect();
        for (const later of blocks.slice(at + 1)) {
          const other = later.getBoundingClientRect();
          const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
          const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
          if (wide > 1 && high > 1) complaints.push(`${named(blocks[at])} over ${named(later)}`);
        }
      }
    }
    return complaints;
  },
  // Text has a contrast of at least 4.5 with what is behind it (WCAG 2.2 AA).
  pale() {
    const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
    const luminance = (colour) =>
      parts(colour)
        .slice(0, 3)
        .map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if ((parts(colour)[3] ?? 1) === 1) return colour;
      }
      return "rgb(255, 255, 255)";
    };
    return visible("body *")
      .filter((element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim()))
      .map((element) => {
        const two = [luminance(getComputedStyle(element).color), luminance(behind(element))].sort((a, b) => a - b);
        return [(two[1] + 0.05) / (two[0] + 0.05), element];
      })
      .filter(([contrast]) => contrast < 4.5)
      .map(([contrast, element]) => `${contrast.toFixed(2)}: ${named(element)}`);
  },
  // How large the letters of every picture are, in pixels, and what it says that it shows.
  pictures() {
    return visible(".picture > *").map((picture) => {
      const box = picture.getBoundingClientRect();
      const ids = (picture.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean);
      const alternative = picture.getAttribute("alt") ?? ids.map((id) => document.getElementById(id).textContent).join(" ");
      const drawn = picture.tagName === "IMG" ? picture.naturalWidth > 0 : picture.querySelectorAll("path, use, text").length > 5;
      const sizes = [...picture.querySelectorAll("text")].map((text) => parseFloat(getComputedStyle(text).fontSize));
      const letters = sizes.length ? (Math.min(...sizes) * box.width) / picture.viewBox.baseVal.width : box.width / 64;
      return { letters, drawn, alternative };
    });
  },
};
