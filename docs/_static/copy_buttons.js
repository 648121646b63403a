// Puts a button at each piece of code that copies it. Where the browser refuses, it selects the code.
document.addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll("article div.highlight pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    code.parentElement.append(button);
  }
});
